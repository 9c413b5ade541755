# SPDX-License-Identifier: Apache-2.0
"""The assignor that brokers run for streams groups (KIP-1071), in readable Python.

Docs     docs/behaviour/server-side.md
"""

from . import sticky

__all__ = ["sticky"]
