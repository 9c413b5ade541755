# SPDX-License-Identifier: Apache-2.0
"""Connect round by round: a cluster with its leader's memory, its changes, and scripts."""

from .cluster import RoundAnswer
from .script import Script, play, run_script

__all__ = ["RoundAnswer", "Script", "play", "run_script"]
