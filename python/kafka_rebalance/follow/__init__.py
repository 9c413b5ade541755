# SPDX-License-Identifier: Apache-2.0
"""Follows all groups of a cluster: reports rebalances as they happen, and keeps metrics."""
