# SPDX-License-Identifier: Apache-2.0
"""Simulated runs as tables, pictures, pages and Parquet."""
