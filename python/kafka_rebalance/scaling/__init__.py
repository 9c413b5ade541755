# SPDX-License-Identifier: Apache-2.0
"""How many members: what each number of members of a group brings, and what the step costs."""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
