# SPDX-License-Identifier: Apache-2.0
"""What a deploy on Kubernetes does to a group: rebalances, moves, unread partitions, seconds."""

from .controllers import Assumed
from .forecast import Forecast, PlayedDeploy, rollout
from .gate import differences
from .manifests import ReadinessProbe, Workload, read_manifest

__all__ = [
    "Assumed", "Forecast", "PlayedDeploy", "ReadinessProbe", "Workload", "differences",
    "read_manifest", "rollout",
]  # fmt: skip
