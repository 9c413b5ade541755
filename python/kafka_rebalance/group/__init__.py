# SPDX-License-Identifier: Apache-2.0
"""A group, its assignments and their differences; the contract as JSON."""
