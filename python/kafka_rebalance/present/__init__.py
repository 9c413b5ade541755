# SPDX-License-Identifier: Apache-2.0
"""Finds the present state of a group, which `describe` shows, and the findings on it."""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
