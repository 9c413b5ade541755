# SPDX-License-Identifier: Apache-2.0
"""Committed offsets: `store` and `order` have them; commit, fetch, delete and expiry."""
