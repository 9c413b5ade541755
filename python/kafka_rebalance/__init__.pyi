# SPDX-License-Identifier: Apache-2.0
# The public names and modules. `__init__.py` reads this list: each line is `from X import N as N`.

__all__: list[str]
__version__: str

from . import assignors as assignors
from . import bulk as bulk
from . import errors as errors
from . import group as group
from . import history as history
from . import live as live
from . import notes as notes
from . import plans as plans
from . import present as present
from . import rollout as rollout
from . import scaling as scaling
from . import simulator as simulator
from . import switching as switching
from .assignors import Assignor as Assignor
from .assignors import assign as assign
from .assignors import assignor_names as assignor_names
from .errors import AssignorThrows as AssignorThrows
from .errors import ClusterError as ClusterError
from .errors import GroupError as GroupError
from .errors import KafkaRebalanceError as KafkaRebalanceError
from .errors import NeverEnds as NeverEnds
from .errors import NoMembersLeft as NoMembersLeft
from .errors import NotAffected as NotAffected
from .group import Assignment as Assignment
from .group import GroupSpec as GroupSpec
from .group import Member as Member
from .group import Topic as Topic
from .group import TopicPartition as TopicPartition
from .live import snapshot as snapshot
from .plans import Figures as Figures
from .plans import RebalancePlan as RebalancePlan
from .plans import plan as plan
from .plans.changes import AddMembers as AddMembers
from .plans.changes import AddPartitions as AddPartitions
from .plans.changes import AddTopics as AddTopics
from .plans.changes import BounceMembers as BounceMembers
from .plans.changes import Change as Change
from .plans.changes import RemoveMembers as RemoveMembers
from .plans.changes import RemoveTopics as RemoveTopics
from .plans.changes import Resubscribe as Resubscribe
from .plans.changes import SwitchAssignor as SwitchAssignor
from .plans.changes import SwitchProtocol as SwitchProtocol
from .present import Description as Description
from .present import describe as describe
from .scaling import Scaled as Scaled
from .scaling import scale as scale
from .simulator import Scenario as Scenario
from .simulator import simulate as simulate
from .simulator.from_group import scenario as scenario
from .switching import Comparison as Comparison
from .switching import compare as compare
