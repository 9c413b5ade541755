# SPDX-License-Identifier: Apache-2.0
"""Changes of a group, as objects and as short strings."""

from .assignor import SwitchAssignor as SwitchAssignor
from .bounces import BounceMembers as BounceMembers
from .change import Change as Change
from .change import apply as apply
from .members import AddMembers as AddMembers
from .members import RemoveMembers as RemoveMembers
from .protocol import SwitchProtocol as SwitchProtocol
from .text import change_from_text as change_from_text
from .topics import AddPartitions as AddPartitions
from .topics import AddTopics as AddTopics
from .topics import RemoveTopics as RemoveTopics
from .topics import Resubscribe as Resubscribe
