# SPDX-License-Identifier: Apache-2.0

from kafka_rebalance.wire.group_records import OffsetsRecord as OffsetsRecord

from .all_groups import rebalance_history as rebalance_history
from .all_groups import recorded_generations as recorded_generations
from .coordinator_log import CoordinatorEvent as CoordinatorEvent
from .coordinator_log import CoordinatorLog as CoordinatorLog
from .coordinator_log import read_coordinator_log as read_coordinator_log
from .counterfactual import Counterfactual as Counterfactual
from .counterfactual import counterfactuals as counterfactuals
from .group_log import RecordedGeneration as RecordedGeneration
from .group_log import RecordedMember as RecordedMember
from .log_causes import with_log as with_log
from .patterns import Pattern as Pattern
from .patterns import PatternKind as PatternKind
from .patterns import find_patterns as find_patterns
from .recorded import BackMember as BackMember
from .recorded import Cause as Cause
from .recorded import Certainty as Certainty
from .recorded import NamedMember as NamedMember
from .recorded import RecordedRebalance as RecordedRebalance
from .recorded import Revocation as Revocation
from .records import read_records as read_records
from .replayed import ReplayedRebalance as ReplayedRebalance
from .replayed import ReplayShare as ReplayShare
from .replayed import replay as replay
from .replayed import replay_shares as replay_shares
