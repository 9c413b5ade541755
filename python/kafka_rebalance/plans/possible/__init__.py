# SPDX-License-Identifier: Apache-2.0
"""Computes the best possible balance, and the least number of moves that leads to it."""
