# SPDX-License-Identifier: Apache-2.0
"""Finds which assignor or protocol is better for a group, and the way to change to it."""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
