# SPDX-License-Identifier: Apache-2.0
"""The assignors of consumer groups (KIP-848), which brokers run, written to be read.

Docs     docs/behaviour/server-side.md
"""

from . import heterogeneous, homogeneous, range, targets, uniform

__all__ = ["heterogeneous", "homogeneous", "range", "targets", "uniform"]
