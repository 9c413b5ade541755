# SPDX-License-Identifier: Apache-2.0
"""What a deploy on Kubernetes does to a group: rebalances, moves, unread partitions, seconds."""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
