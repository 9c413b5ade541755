# SPDX-License-Identifier: Apache-2.0
"""Follows all groups of a cluster: their rebalances as they happen, and metrics of them."""
