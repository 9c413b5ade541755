# SPDX-License-Identifier: Apache-2.0
"""Plays the rebalances of a Connect cluster; the input is a JSON script or a list of events."""
