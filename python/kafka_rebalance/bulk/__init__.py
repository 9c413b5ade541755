# SPDX-License-Identifier: Apache-2.0
"""Many groups in one call: JSON lines, Arrow record batches."""
