# SPDX-License-Identifier: Apache-2.0
"""A group, what it may be, and how it is written: groups, assignments, differences, field paths."""
