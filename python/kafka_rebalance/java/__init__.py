# SPDX-License-Identifier: Apache-2.0
"""Orders that come from Java's collections, and the patterns of RE2/J."""
