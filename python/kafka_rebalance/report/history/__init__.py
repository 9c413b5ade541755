# SPDX-License-Identifier: Apache-2.0
"""Reports on histories of rebalances: tables and pages."""
