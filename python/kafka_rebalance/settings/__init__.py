# SPDX-License-Identifier: Apache-2.0
"""Judges settings of clients by rules; the simulator shows the effects of their values."""
