# SPDX-License-Identifier: Apache-2.0
"""The assignors of Kafka, of other libraries and of users: `assign` runs one of them on a group."""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
