# SPDX-License-Identifier: Apache-2.0
"""Kafka Connect's assignors, which decide which worker runs which connectors and tasks.

The names in this package's stub (`__init__.pyi`) are the classes that the core makes.
"""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
