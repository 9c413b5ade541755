# SPDX-License-Identifier: Apache-2.0
"""Plays the rebalances of a Connect cluster: its leader's memory, changes, JSON scripts."""

# `as` marks a name that this package exports.
from .cluster import RoundAnswer as RoundAnswer
from .script import Script as Script
from .script import play as play
from .script import run_script as run_script
