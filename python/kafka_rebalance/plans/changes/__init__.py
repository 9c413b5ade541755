# SPDX-License-Identifier: Apache-2.0
"""Changes of a group, as objects and as short strings."""

from kafka_rebalance.lazy import lazy

__getattr__, __dir__ = lazy(globals())
