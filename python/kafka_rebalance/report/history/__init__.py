# SPDX-License-Identifier: Apache-2.0
"""Reports of rebalance histories: tables and pages."""
