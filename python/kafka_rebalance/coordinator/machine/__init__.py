# SPDX-License-Identifier: Apache-2.0
"""The parts that groups of every kind share: the state, deadlines, appends, loading."""
