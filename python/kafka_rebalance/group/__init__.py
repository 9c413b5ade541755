# SPDX-License-Identifier: Apache-2.0
"""Groups, their assignments and the differences between assignments; groups as JSON lines."""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
