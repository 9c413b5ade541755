# SPDX-License-Identifier: Apache-2.0
"""Committed offsets: `store` and `order` have them; commits, fetches, deletions and expiry."""
