# SPDX-License-Identifier: Apache-2.0
"""Committed offsets: `store` has them; commits, fetches, deletions and expiry."""
