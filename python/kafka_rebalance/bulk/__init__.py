# SPDX-License-Identifier: Apache-2.0
"""Answers many groups in one call, as JSON lines or as Arrow record batches."""
