# SPDX-License-Identifier: Apache-2.0
"""Plans: the effect of changes on a group, rebalance by rebalance."""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
