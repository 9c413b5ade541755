# SPDX-License-Identifier: Apache-2.0
"""Computes the best possible balance, and the fewest moves that lead to it."""
