# SPDX-License-Identifier: Apache-2.0

from .applications import ApplicationRow as ApplicationRow
from .applications import applications_batch as applications_batch
from .applications import plan_applications as plan_applications
from .batch import assign_batch as assign_batch
from .batch import compare_batch as compare_batch
from .batch import plan_batch as plan_batch
from .lines import LineAnswer as LineAnswer
from .lines import assign_lines as assign_lines
