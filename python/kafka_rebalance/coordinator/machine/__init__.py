# SPDX-License-Identifier: Apache-2.0
"""What holds for groups of every kind: the state, deadlines, appends, loading."""
