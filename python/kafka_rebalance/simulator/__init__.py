# SPDX-License-Identifier: Apache-2.0
"""Plays rebalances in virtual time: `simulate(scenario)` returns who held which partition when."""

from kafka_rebalance.lazy import lazily

__getattr__, __dir__ = lazily(globals())
