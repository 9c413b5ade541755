# SPDX-License-Identifier: Apache-2.0
"""Changes as short strings, with one grammar for Python, the command line and data frames.

    change  = verb [("=" | " ") value]        add-members=2   partitions orders=24
    --verb value                              a change as an option of the command line

Mirror: `src/plans/changes/text.rs`.
"""

import re

from kafka_rebalance.errors import did_you_mean
from kafka_rebalance.group.model import quoted

from .assignor import SwitchAssignor
from .bounces import BounceMembers
from .change import Change
from .edits import error
from .members import AddMembers, RemoveMembers
from .protocol import SwitchProtocol
from .topics import AddPartitions, AddTopics, RemoveTopics, Resubscribe

CHANGES: tuple[type[Change], ...] = (
    AddMembers,
    RemoveMembers,
    AddPartitions,
    AddTopics,
    RemoveTopics,
    Resubscribe,
    SwitchAssignor,
    BounceMembers,
    SwitchProtocol,
)
"""All kinds of changes; the command line shows their options in this order."""

_TEXT = re.compile(r"([a-z-]+)(?:[= ](.*))?", re.DOTALL)


def change_from_text(text: str) -> Change:
    """Parses one change. Errors: GroupError at `change` if the string is not a change."""
    if not isinstance(text, str):
        raise error(f"{text!r} is not a text, as add-members=2")
    match = _TEXT.fullmatch(text.strip(" \t\r\n"))
    name, value = (match[1], match[2] or "") if match else (text, "")
    classes = {verb.name: change for change in CHANGES for verb in change.VERBS}
    if name not in classes:
        near = did_you_mean(name, classes)
        raise error(f"{quoted(text)} begins with none of {', '.join(classes)}{near}")
    return classes[name].parse(name, value)
