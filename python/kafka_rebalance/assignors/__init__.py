# SPDX-License-Identifier: Apache-2.0
"""Kafka's assignors, other libraries' and users' own: `assign` runs one of them on a group."""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
