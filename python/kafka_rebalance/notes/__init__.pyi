# SPDX-License-Identifier: Apache-2.0

from .all_notes import comparison_notes as comparison_notes
from .all_notes import plan_notes as plan_notes
from .findings import FINDINGS as FINDINGS
from .findings import Finding as Finding
from .findings import FindingKind as FindingKind
from .findings import Note as Note
from .findings import PlanKind as PlanKind
from .findings import Severity as Severity
from .never_ends import Endless as Endless
from .never_ends import WayOut as WayOut
from .never_ends import endless as endless
