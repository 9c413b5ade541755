# SPDX-License-Identifier: Apache-2.0
"""Connect round by round: a cluster with its leader's memory, its changes, and scripts."""

# `as` marks a name that this package exports.
from .cluster import RoundAnswer as RoundAnswer
from .script import Script as Script
from .script import play as play
from .script import run_script as run_script
