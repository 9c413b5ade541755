# SPDX-License-Identifier: Apache-2.0
"""Reports on simulated runs: tables, pictures, pages and Parquet files."""
