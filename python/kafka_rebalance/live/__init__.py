# SPDX-License-Identifier: Apache-2.0
"""Reads live clusters: consumer groups through a broker, Connect clusters through REST."""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
