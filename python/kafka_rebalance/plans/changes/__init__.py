# SPDX-License-Identifier: Apache-2.0
"""Changes to a group, as objects and as short strings."""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
