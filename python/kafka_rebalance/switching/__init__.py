# SPDX-License-Identifier: Apache-2.0
"""Finds the better assignor or protocol for a group, and the way to change to it."""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
