# SPDX-License-Identifier: Apache-2.0
"""Reports on plans, comparisons and Connect rounds: tables, pictures and pages."""
