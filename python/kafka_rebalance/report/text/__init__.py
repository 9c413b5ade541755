# SPDX-License-Identifier: Apache-2.0
"""Text that reports share: tables, names, progress; and their page."""
