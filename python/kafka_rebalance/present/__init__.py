# SPDX-License-Identifier: Apache-2.0
"""What `describe` shows: the present state of a group, and the findings."""
