# SPDX-License-Identifier: Apache-2.0
"""Kafka Connect's assignors, which decide which worker runs which connectors and tasks.

The stub's names are the classes that the core makes.
"""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
