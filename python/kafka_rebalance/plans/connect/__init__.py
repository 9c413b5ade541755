# SPDX-License-Identifier: Apache-2.0
"""Connect round by round: a cluster that remembers, what happens to it, and scripts of both."""

from .cluster import RoundAnswer
from .script import Script, play, run_script

__all__ = ["RoundAnswer", "Script", "play", "run_script"]
