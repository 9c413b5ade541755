# SPDX-License-Identifier: Apache-2.0
"""Checks: findings and limits as one verdict, for pipelines (`kafka-rebalance check`)."""
