# SPDX-License-Identifier: Apache-2.0
"""Follows a live group by its records in `__consumer_offsets`, and yields each state.

1. The group's partition of the topic is read from its beginning. The newest record of the group is
   the first state. If the group has no record yet, wait as long as its description shows no
   members, or a rebalance.
2. Each later record is a state, because the broker writes a record when a rebalance completes. A
   record without members is left out, and so is a record that repeats the state before it.
3. A record contains the generation and the leader, which descriptions lack, and what each member
   sent before the assignment. Its partition counts are those that the cluster has when it is read.
4. A deleted record means that the group is empty, or that the broker assigns it now (KIP-848): the
   group's description shows which. The caller then goes on with descriptions.
5. If the partition's leader does not answer, `patience.py` waits, and reading goes on after the
   last record.

Reading changes nothing. A cooperative group has one state after each round.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

from kafka_rebalance.errors import GroupError, NotReachedError, WireError
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.wire import group_records

from .classic_groups import described_line, sent_members
from .consumer_groups import NO_SUCH_GROUP, with_topics
from .offsets_log import TOPIC, NoLogError, NoTopicError, followed_records
from .patience import Patience
from .watched_group import EMPTY, WITHOUT_MEMBERS, described, is_by_broker

_EMPTY = f"{EMPTY}, it has no members"
_BEFORE_RECORD = (NO_SUCH_GROUP, "state: ")
"""How the errors begin that allow a wait: the group's first record may still be written."""
_SETTLED = "settled"


def logged_states(
    bootstrap_server: str,
    group_id: str,
    *,
    configs: Mapping[str, Any] | None = None,
    on_waiting: Callable[[str], None] = lambda _: None,
    **patient: Any,
) -> Iterator[tuple[GroupSpec, GroupSpec]]:
    """Yields the group after each of its rebalances, and the group as its leader saw it.

    `on_waiting` is called with each new reason why there is no record yet, if the newest record has
    no members, and when the group has lost its members. `patient` are the options of `Patience`,
    such as `for_s`: the seconds of the watch.

    Errors: NoLogError if this user may not read the topic, or if a group of this name has members,
    but is not in the topic as a classic consumer group, or no longer, because the broker assigns
    the group; ClusterError; NotReachedError if `Patience` ends; GroupError for a record that is not
    a valid group.
    """
    patience = Patience(bootstrap_server, configs, **patient)
    watched = _Watched(bootstrap_server, group_id, configs, patience, on_waiting)
    key = group_records.GroupMetadataKey(group_id)
    has_record = False
    for values in _values(_followed(bootstrap_server, group_id, configs, patience), key):
        groups = [_consumers(key, value) for value in values]
        # 1.
        has_record = has_record or any(groups)
        if not has_record:
            watched.await_record()
            groups = []
        # 2.
        for group in groups:
            yield from watched.states(group)
        # 4.
        if watched.is_deleted:
            watched.look()
        if patience.is_over:
            return
        time.sleep(patience.every_s)


class _Watched:
    """The group as its newest record shows it."""

    def __init__(
        self,
        bootstrap_server: str,
        group_id: str,
        configs: Mapping[str, Any] | None,
        patience: Patience,
        on_waiting: Callable[[str], None],
    ) -> None:
        self._server, self._group_id, self._configs = bootstrap_server, group_id, configs
        self._patience, self._on_waiting = patience, on_waiting
        self._yielded: dict[str, Any] | None = None
        self._why = ""
        self._is_empty = False
        self.is_deleted = False

    def states(
        self, group: group_records.GroupMetadataValue | None
    ) -> Iterator[tuple[GroupSpec, GroupSpec]]:
        """Yields the state in a record, if it is a new one; none if the time is over."""
        self.is_deleted = group is None
        if group is None:
            return
        if not group.members:
            self._wait()
            return
        self._is_empty = False
        # 3.
        seen = _as_described(self._group_id, group)
        line = {**described_line(seen, group.generation_id), "leader": group.leader}
        if line == self._yielded:
            return
        self._yielded = line
        ask = partial(with_topics, self._server, line, configs=self._configs)
        whole = self._patience.asked(ask)
        if whole is not None:
            after = GroupSpec.from_dict(whole)
            yield after, after.edited(members=sent_members(seen))

    def await_record(self) -> None:
        """Checks whether a first record may come. NoLogError: twice members, but no record."""
        line = self._described(was_seen=False)
        said, self._why = self._why, line.get("error", _SETTLED)
        if self._why.startswith(_BEFORE_RECORD):
            if self._why != said:
                self._on_waiting(self._why)
        elif line and (self._why != _SETTLED or said == _SETTLED or is_by_broker(line)):
            raise NoLogError(f"{TOPIC} has no record of a classic consumer group {self._group_id}")

    def look(self) -> None:
        """Finds out why the record was deleted. NoLogError: the broker assigns the group."""
        line = self._described(was_seen=True)
        if is_by_broker(line):
            how = f"the broker assigns it now, by {line['assignor']}"
            raise NoLogError(f"{self._group_id} was converted: {how}")
        if line.get("error", "").startswith(WITHOUT_MEMBERS):
            self._wait()

    def _described(self, *, was_seen: bool) -> dict[str, Any]:
        """Returns the description; an empty one if the time is over."""
        server, configs = self._server, self._configs
        ask = partial(described, server, self._group_id, configs=configs, was_seen=was_seen)
        return self._patience.asked(ask) or {}

    def _wait(self) -> None:
        if not self._is_empty:
            self._is_empty = True
            self._on_waiting(_EMPTY)


# 5.
def _followed(
    bootstrap_server: str, group_id: str, configs: Mapping[str, Any] | None, patience: Patience
) -> Iterator[group_records.OffsetsRecord | None]:
    """Yields as `followed_records`, and goes on after failures; None while the topic is missing."""
    offset = -1
    while not patience.is_over:
        try:
            for record in followed_records(
                bootstrap_server, group_id, configs=configs, after=offset
            ):
                patience.reached()
                offset = offset if record is None else record.offset
                yield record
            return
        except NoTopicError:
            yield None
        except NotReachedError as error:
            patience.wait(error)


def _values(
    followed: Iterable[group_records.OffsetsRecord | None], key: group_records.GroupMetadataKey
) -> Iterator[list[bytes | None]]:
    """Yields a list each time the end is reached: first the key's newest value, then new ones."""
    encoded = group_records.encode_key(key)
    values: list[bytes | None] = []
    has_begun = False
    for record in followed:
        if record is None:
            yield values
            has_begun, values = True, []
        elif record.key == encoded:
            values = [*(values if has_begun else ()), record.value]


def _consumers(
    key: group_records.GroupMetadataKey, value: bytes | None
) -> group_records.GroupMetadataValue | None:
    """Returns the group in a record; None for a deleted group and for one without consumers."""
    try:
        group = group_records.decode_value(key, value)
    except WireError as error:
        raise GroupError("record", f"{key.group_id}: {error}") from error
    assert not isinstance(group, group_records.OffsetCommitValue)
    return group if group and group.protocol_type in ("consumer", "") else None  # "": new group


# 3.
def _as_described(group_id: str, group: group_records.GroupMetadataValue) -> Any:
    """Returns the group in the form of a DescribeGroups response."""
    return SimpleNamespace(
        group_id=group_id,
        protocol_data=group.protocol,
        members=[
            SimpleNamespace(
                member_id=one.member_id,
                group_instance_id=one.group_instance_id,
                client_id=one.client_id,
                client_host=one.client_host,
                member_metadata=one.subscription,
                member_assignment=one.assignment,
            )
            for one in group.members
        ],
    )
