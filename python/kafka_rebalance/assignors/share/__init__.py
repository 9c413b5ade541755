# SPDX-License-Identifier: Apache-2.0
"""The assignor of share groups (KIP-932), which brokers run, written to be read.

Docs     docs/behaviour/server-side.md
"""

from . import simple

__all__ = ["simple"]
