# SPDX-License-Identifier: Apache-2.0
"""Every order that comes from Java's collections."""
