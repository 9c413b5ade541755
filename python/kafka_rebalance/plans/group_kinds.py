# SPDX-License-Identifier: Apache-2.0
"""The kinds of groups, and the assignors that each can run; no change makes one kind into another.

A consumer group runs an assignor of the leader (classic protocol) or consumer/… (KIP-848), and
`SwitchProtocol` changes its protocol. A share group runs share/… (KIP-932), a streams group runs
streams/… (KIP-1071).
"""

from kafka_rebalance.assignors.registry import KAFKAS, SERVER_SIDE, in_core, library_of
from kafka_rebalance.group.model import quoted
from kafka_rebalance.group.spec import GroupSpec

CLASSIC, CONSUMER = "classic", "consumer"
NOT_PLAYED = "of a streams group, the plan plays only members that join, leave or restart"


def protocol_kind(assignor: str) -> str:
    """Returns "classic" for an assignor that a leader runs, else "consumer", "share" or "streams".

    >>> protocol_kind("librdkafka/range"), protocol_kind("consumer/range")
    ('classic', 'consumer')
    """
    return library_of(assignor) or "" if assignor in SERVER_SIDE else CLASSIC


def never_runs(group: GroupSpec, assignor: str) -> str | None:
    """Returns the text of an error if a group of this kind can never run the assignor, else None.

    Without an assignor, the group's kind is unknown, and the result is None.
    """
    if group.assignor is None or _kind(group.assignor) == _kind(assignor):
        return None
    own = _kind(group.assignor)
    return (
        f"{quoted(assignor)} assigns {_kind(assignor)} groups only, and this is a {own} group, "
        f"which runs {quoted(group.assignor)}; assignors that fit: {', '.join(_fitting(own))}"
    )


def by_switch_protocol(old: str, new: str) -> str | None:
    """Returns the value of `switch-protocol` that changes `old` to `new`; None if no value does.

    >>> by_switch_protocol("range", "consumer/uniform"), by_switch_protocol("range", "sticky")
    ('consumer/uniform', None)
    """
    kinds = protocol_kind(old), protocol_kind(new)
    if kinds == (CLASSIC, CONSUMER):
        return new
    return f"{CLASSIC}/{new}" if kinds == (CONSUMER, CLASSIC) else None


def _kind(assignor: str) -> str:
    kind = protocol_kind(assignor)
    return CONSUMER if kind == CLASSIC else kind


def _fitting(kind: str) -> list[str]:
    brokers = [name for name in in_core() if name in SERVER_SIDE and _kind(name) == kind]
    return [*KAFKAS, *brokers] if kind == CONSUMER else brokers
