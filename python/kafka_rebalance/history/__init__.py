# SPDX-License-Identifier: Apache-2.0
"""Reads past rebalances and their causes from the records of `__consumer_offsets`."""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
