# SPDX-License-Identifier: Apache-2.0
"""Another assignor or protocol: which one is better for a group, and the way to it."""
