# SPDX-License-Identifier: Apache-2.0
"""Finds what `describe` shows: the present state of a group, and the findings."""
