# SPDX-License-Identifier: Apache-2.0
"""Differences from Kafka's coordinator that random runs have found.

Most tests play commands of the driver on our coordinator and on Kafka's own. The random runs are
those of `tools/differential_coordinator.py`, with raw records, timeouts of 0 and open transactions.
"""
