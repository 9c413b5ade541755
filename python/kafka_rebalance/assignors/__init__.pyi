# SPDX-License-Identifier: Apache-2.0

from .assigning import assign as assign
from .assigning import validate_cooperative as validate_cooperative
from .interface import Assignor as Assignor
from .interface import RebalanceProtocol as RebalanceProtocol
from .objects import CooperativeSticky as CooperativeSticky
from .objects import Range as Range
from .objects import RoundRobin as RoundRobin
from .objects import Sticky as Sticky
from .registry import Engine as Engine
from .registry import assignor_names as assignor_names
from .registry import register as register
from .registry import unregister as unregister
