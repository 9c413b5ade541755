# SPDX-License-Identifier: Apache-2.0

from .choice import choose as choose
from .counts import Count as Count
from .counts import Scaled as Scaled
from .counts import scale as scale
from .steps import Given as Given
from .steps import Loads as Loads
from .steps import Ranges as Ranges
