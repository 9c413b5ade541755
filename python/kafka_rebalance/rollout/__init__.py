# SPDX-License-Identifier: Apache-2.0
"""The effects of a deploy on Kubernetes on a group: rebalances, moves, partitions, seconds."""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
