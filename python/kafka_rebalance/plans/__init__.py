# SPDX-License-Identifier: Apache-2.0
"""Plans: the effect of changes on a group, rebalance by rebalance."""

from kafka_rebalance.lazy import lazy

__getattr__, __dir__ = lazy(globals())
