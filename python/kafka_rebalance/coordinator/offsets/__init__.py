# SPDX-License-Identifier: Apache-2.0
"""Committed offsets: `store` holds them; `requests` commits, fetches, deletes and expires them."""
