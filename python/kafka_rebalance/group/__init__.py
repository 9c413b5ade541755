# SPDX-License-Identifier: Apache-2.0
"""Groups, their assignments and the differences between assignments; groups as JSON lines."""

from .model import (
    MAX_PARTITIONS,
    Member,
    RebalanceProtocolName,
    StreamsMember,
    Subtopology,
    TaskOffset,
    Topic,
    TopicPartition,
    UserData,
)
from .ownership import Anomaly, AnomalyKind, Assignment, Balance, Delta
from .spec import GroupSpec

__all__ = [
    "MAX_PARTITIONS", "Anomaly", "AnomalyKind", "Assignment", "Balance", "Delta", "GroupSpec",
    "Member", "RebalanceProtocolName", "StreamsMember", "Subtopology", "TaskOffset", "Topic",
    "TopicPartition", "UserData",
]  # fmt: skip
