# SPDX-License-Identifier: Apache-2.0
"""Notes: facts that a person should know, besides a plan's figures or a group's state."""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
