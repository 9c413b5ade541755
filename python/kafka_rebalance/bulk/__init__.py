# SPDX-License-Identifier: Apache-2.0
"""Assigns, plans or compares many groups in one call, as JSON lines or as Arrow record batches."""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
