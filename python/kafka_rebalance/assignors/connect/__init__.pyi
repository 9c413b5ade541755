# SPDX-License-Identifier: Apache-2.0

from .incremental import Memory as Memory
from .incremental import Result as Result
from .work import Task as Task
from .work import Work as Work
