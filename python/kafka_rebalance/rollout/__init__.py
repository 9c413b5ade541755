# SPDX-License-Identifier: Apache-2.0
"""What a deploy on Kubernetes does to a group: rebalances, moves, unread partitions, seconds."""

from kafka_rebalance.lazy import lazy

__getattr__, __dir__ = lazy(globals())
