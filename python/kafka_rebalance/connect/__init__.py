# SPDX-License-Identifier: Apache-2.0
"""Plays the rebalances of a Connect cluster; the input is a JSON script or a list of events."""

from .cluster import RoundAnswer as RoundAnswer
from .script import Script as Script
from .script import play as play
from .script import run_script as run_script
