# SPDX-License-Identifier: Apache-2.0
"""Compares the rebalances of a live group with the plans that predict them."""
