# SPDX-License-Identifier: Apache-2.0
"""The effects of a Kubernetes deploy on a group: rebalances, moves, and time without a reader."""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
