# SPDX-License-Identifier: Apache-2.0
"""Judges settings of clients by rules; the simulator plays what happens with the given numbers."""
