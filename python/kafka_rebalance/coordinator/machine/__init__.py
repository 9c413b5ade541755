# SPDX-License-Identifier: Apache-2.0
"""Common to groups of every kind: the state, deadlines, appends, loading."""
