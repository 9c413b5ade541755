# SPDX-License-Identifier: Apache-2.0
"""Notes: facts that a person should know beside the figures of a plan or the state of a group."""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
