# SPDX-License-Identifier: Apache-2.0
"""The effects of each number of members of a group, and the cost of each step to another number."""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
