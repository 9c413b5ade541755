# SPDX-License-Identifier: Apache-2.0

from .comparison import Comparison as Comparison
from .comparison import compare as compare
from .migrations import Migration as Migration
from .recommendation import Candidate as Candidate
from .rounds import Bounce as Bounce
