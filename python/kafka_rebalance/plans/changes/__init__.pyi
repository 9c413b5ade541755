# SPDX-License-Identifier: Apache-2.0

from .assignor import SwitchAssignor as SwitchAssignor
from .bounces import BounceMembers as BounceMembers
from .change import Change as Change
from .change import Verb as Verb
from .change import apply as apply
from .edits import Edited as Edited
from .edits import GroupEvent as GroupEvent
from .made_up import Basis as Basis
from .made_up import Draw as Draw
from .made_up import MadeUp as MadeUp
from .made_up import Newcomer as Newcomer
from .members import AddMembers as AddMembers
from .members import RemoveMembers as RemoveMembers
from .protocol import SwitchProtocol as SwitchProtocol
from .text import change_from_text as change_from_text
from .topics import AddPartitions as AddPartitions
from .topics import AddTopics as AddTopics
from .topics import RemoveTopics as RemoveTopics
from .topics import Resubscribe as Resubscribe
