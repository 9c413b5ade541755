# SPDX-License-Identifier: Apache-2.0

from .model import MAX_PARTITIONS as MAX_PARTITIONS
from .model import Member as Member
from .model import RebalanceProtocolName as RebalanceProtocolName
from .model import StreamsMember as StreamsMember
from .model import Subtopology as Subtopology
from .model import TaskOffset as TaskOffset
from .model import Topic as Topic
from .model import TopicPartition as TopicPartition
from .model import UserData as UserData
from .ownership import Anomaly as Anomaly
from .ownership import AnomalyKind as AnomalyKind
from .ownership import Assignment as Assignment
from .ownership import Balance as Balance
from .ownership import Delta as Delta
from .spec import GroupSpec as GroupSpec
