# SPDX-License-Identifier: Apache-2.0
"""What a deploy on Kubernetes does to a group: rebalances, moves, unread partitions, seconds."""

from .controllers import Assumed
from .forecast import Forecast, Played, rollout
from .gate import differences
from .manifests import Probe, Workload, read_manifest

__all__ = [
    "Assumed", "Forecast", "Played", "Probe", "Workload", "differences", "read_manifest", "rollout",
]  # fmt: skip
