# SPDX-License-Identifier: Apache-2.0
"""Compares the rebalances of a real group with the plan of them."""
