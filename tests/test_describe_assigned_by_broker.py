# SPDX-License-Identifier: Apache-2.0
"""`describe` reads groups that the broker assigns, from bytes that a Kafka 4.4.0 broker sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kafka_rebalance import GroupError, GroupSpec, Topic, TopicPartition
from kafka_rebalance.errors import WireError
from kafka_rebalance.live import broker_groups, other_groups
from kafka_rebalance.live.broker_groups import (
    DESCRIBE_APIS,
    DescribeApi,
    broker_line,
    describe_request,
)
from kafka_rebalance.present.broker_assigned import AssignedByBroker
from kafka_rebalance.present.description import describe
from kafka_rebalance.report.groups.other_groups import print_assigned_by_broker
from kafka_rebalance.wire.broker_groups import DescribedConsumerMember, DescribedPartitions

# Bodies of responses in version 1, recorded from groups with real Java members.
MODERN = bytes.fromhex(
    "0000000002000000076d6f6465726e07537461626c65000000040000000408756e69666f726d0417756e5679"
    "6e48355651303259694d313874584a6e4967000000000004096d6f6465726e2d310b2f3132372e302e302e31"
    "0302740275010220233c50b0ea49a2a01afefbb7447aa502740400000000000000020000000400000220233c"
    "50b0ea49a2a01afefbb7447aa50274040000000000000002000000040000010017777a734e38705071526e75"
    "446f623977324f50335441000000000004096d6f6465726e2d300b2f3132372e302e302e3102027401022023"
    "3c50b0ea49a2a01afefbb7447aa502740400000001000000030000000500000220233c50b0ea49a2a01afefb"
    "b7447aa502740400000001000000030000000500000100177548644b75774f4451575377375370776b7a6b62"
    "4e77000000000004096d6f6465726e2d320b2f3132372e302e302e3103027402750102c0a83cabdabc494584"
    "cb1f5ee85a6e9b027504000000000000000100000002000002c0a83cabdabc494584cb1f5ee85a6e9b027504"
    "00000000000000010000000200000100800000000000"
)
SHARED = bytes.fromhex(
    "00000000020000000773686172656407537461626c6500000003000000030773696d706c65031742574f415f"
    "765a425479796a516b33375655704d35670000000003097368617265642d300b2f3132372e302e302e310202"
    "740220233c50b0ea49a2a01afefbb7447aa5027404000000000000000200000004000000174533713130694d"
    "345372433254725278575f764259670000000003097368617265642d310b2f3132372e302e302e3102027402"
    "20233c50b0ea49a2a01afefbb7447aa5027404000000010000000300000005000000800000000000"
)


def _partitions(*texts: str) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(text[0], int(text[1:])) for text in texts)


CONSUMER, SHARE = DESCRIBE_APIS["consumer"], DESCRIBE_APIS["share"]


def _described(*texts: str) -> tuple[DescribedPartitions, ...]:
    """Returns partitions of one topic, with the topic id in the recorded bytes."""
    if not texts:
        return ()
    numbers = tuple(int(text[1:]) for text in texts)
    return (
        DescribedPartitions(
            _decoded(CONSUMER, MODERN).members[0].assignment[0].topic_id, "t", numbers
        ),
    )


def _decoded(api: DescribeApi, data: bytes) -> Any:
    (group,) = api.read(1, data)
    return group


def test_a_recorded_consumer_group() -> None:
    group = _decoded(CONSUMER, MODERN)
    assert (group.error_code, group.group_id, group.group_type) == (0, "modern", "consumer")
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 4, 4)
    assert group.assignor_name == "uniform"
    assert [one.client_id for one in group.members] == ["modern-1", "modern-0", "modern-2"]
    first = group.members[0]
    assert first == DescribedConsumerMember(
        member_id="unVynH5VQ02YiM18tXJnIg",
        instance_id=None,
        rack_id=None,
        member_epoch=4,
        client_id="modern-1",
        client_host="/127.0.0.1",
        subscribed_topic_names=("t", "u"),
        subscribed_topic_regex="",
        assignment=_described("t0", "t2", "t4"),
        target_assignment=_described("t0", "t2", "t4"),
        member_type=1,
    )
    assert first.assigned == first.target == _partitions("t0", "t2", "t4")
    assert (first.topic_regex, first.is_classic) == (None, False)
    assert group.members[2].assigned == _partitions("u0", "u1", "u2")


def test_a_recorded_share_group() -> None:
    group = _decoded(SHARE, SHARED)
    assert (group.group_type, group.group_epoch, group.assignor_name) == ("share", 3, "simple")
    assert [one.assigned for one in group.members] == [
        _partitions("t0", "t2", "t4"),
        _partitions("t1", "t3", "t5"),
    ]
    assert [(one.target, one.is_classic) for one in group.members] == [(None, None)] * 2


def test_version_0_has_no_member_type() -> None:
    data = MODERN.replace(b"\x01\0\x17", b"\0\x17").replace(b"\x01\0\x80\0", b"\0\x80\0")
    (group,) = CONSUMER.read(0, data)
    expected = [replace(one, member_type=-1) for one in _decoded(CONSUMER, MODERN).members]
    assert list(group.members) == expected


@pytest.mark.parametrize(("api", "data"), [(CONSUMER, MODERN), (SHARE, SHARED)])
def test_cut_and_long_responses_are_refused(api: DescribeApi, data: bytes) -> None:
    for length in range(len(data)):
        with pytest.raises(WireError):
            api.read(1, data[:length])
    with pytest.raises(WireError, match="1 bytes too many"):
        api.read(1, data + b"\0")


def test_the_request() -> None:
    assert describe_request("abc") == b"\x02\x04abc\0\0"


def test_a_consumer_group_in_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    group = _decoded(CONSUMER, MODERN)
    lags = {TopicPartition("t", 0): 5, TopicPartition("u", 1): 1200}
    one = AssignedByBroker(group, lags)
    print_assigned_by_broker(one, "GIVEN", everything=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("modern, consumer protocol (KIP-848), assignor uniform, Stable: ")
    assert lines[0].endswith(": 3 members, 9 partitions owned")
    assert lines[1] == "Group epoch 4, assignment epoch 4."
    rows = [line.split() for line in lines if "modern-" in line]
    assert [(row[1], row[-1]) for row in rows] == [
        ("modern-1", "5"),
        ("modern-0", "-"),  # no committed offset
        ("modern-2", "1,200"),
    ]
    assert "Partitions per member: 3, as even as possible." in lines
    assert "Subscribed: t, u." in lines
    assert (
        "Lag: 1,205 records in 2 partitions; 7 partitions without a committed offset: their lag is "
        "unknown (-), and in no sum."
    ) in " ".join(lines)
    found = one.to_dict()
    assert (found["lag"], found["without_committed_offset"]) == (1205, 7)
    assert [member["lag"] for member in found["members"]] == [5, None, 1200]
    print_assigned_by_broker(AssignedByBroker(group, {}), "GIVEN", everything=False)
    unknown = (
        "Lag: 9 partitions without a committed offset: their lag is unknown (-), and in no sum."
    )
    assert unknown in capsys.readouterr().out.splitlines()
    assert AssignedByBroker(group, {}).to_dict()["lag"] is None
    assert lines[-1] == "  kafka-consumer-groups.sh --describe --offsets GIVEN"
    assert not any("target" in line for line in lines)


def test_a_share_group_in_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    group = AssignedByBroker(_decoded(SHARE, SHARED))
    print_assigned_by_broker(group, "GIVEN", everything=False)
    printed = capsys.readouterr().out
    assert printed.startswith("shared, share group (KIP-932), assignor simple, Stable: 2 members")
    assert "Lag" not in printed
    assert printed.endswith("  kafka-share-groups.sh --describe --offsets GIVEN\n")


def test_a_group_without_members_says_so_with_its_lag(capsys: pytest.CaptureFixture[str]) -> None:
    empty = replace(_decoded(CONSUMER, MODERN), members=(), group_state="Empty")
    for lags, waits in (
        ({TopicPartition("t", 0): 4000, TopicPartition("t", 1): 1000}, "the lag is 5,000 records"),
        ({TopicPartition("t", 0): 0}, "the lag is 0 records"),
        (None, "the lag is not known: no offset is committed"),
    ):
        print_assigned_by_broker(AssignedByBroker(empty, lags), "H", everything=False)
        assert f"No members, so nobody reads; {waits}." in capsys.readouterr().out


def test_a_member_that_moves_shows_its_target(capsys: pytest.CaptureFixture[str]) -> None:
    group = _decoded(CONSUMER, MODERN)
    first, *others = group.members
    moving = replace(
        first, assignment=_described("t0", "t2", "t4", "t5"), subscribed_topic_regex="^t"
    )
    idle = replace(others[0], assignment=(), target_assignment=(), member_type=0)
    changed = AssignedByBroker(replace(group, group_epoch=5, members=(moving, idle, others[1])))
    found = {one.kind: one.member_ids for one in changed.findings}
    assert list(found) == ["reconciling", "assigning", "idle", "mixed"]
    assert (found["reconciling"], found["idle"]) == ((first.member_id,), (others[0].member_id,))
    assert [one["kind"] for one in changed.to_dict()["findings"]] == list(found)
    assert changed.to_dict()["members"][0]["target_partitions"] == ["t-0", "t-2", "t-4"]
    assert (changed.balance.min, changed.balance.max) == (0, 4)
    print_assigned_by_broker(changed, "GIVEN", everything=False)
    printed = capsys.readouterr().out
    assert "t[0, 2, 4-5]   t[0, 2, 4]" in printed
    assert "Partitions per member: 0-4.\n" in printed
    assert "Subscribed: t, u, pattern ^t.\n" in printed


def test_racks_and_leaders_are_those_of_the_table_of_all_groups(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The table takes them from the snapshot's topics: the description contains no racks of
    replicas.
    """
    described = _decoded(CONSUMER, MODERN)
    members = tuple(replace(one, rack_id="a") for one in described.members)
    group = replace(described, members=members)
    topics = Topic("t", 6, (("a",),) * 4 + (("b",), (None,))), Topic("u", 3)
    (lost,) = _partitions("u1")
    one = AssignedByBroker(group, {}, [lost, *_partitions("v0")], topics)
    far = {found.kind: found for found in one.findings}
    assert far["across racks"].partitions == _partitions("t4")
    assert far["across racks"].member_ids == (members[0].member_id,)
    assert far["leaderless"].partitions == (lost,)
    assert (one.rack_share, one.without_committed_offset) == (4 / 5, 8)
    ids = {"t": "AAAAAAAAAAEAAAAAAAAAAg", "u": "AAAAAAAAAAEAAAAAAAAAAw"}
    with_ids = tuple(replace(topic, topic_id=ids[topic.name]) for topic in topics)
    spec = GroupSpec.from_dict(broker_line(group, ())).edited(topics=with_ids)
    table = describe(spec, lags={}, leaderless=[lost])
    assert table.rack_share == one.rack_share
    shown = {found.kind: found.partitions for found in table.findings}
    assert {kind: shown[kind] for kind in ("across racks", "leaderless")} == {
        kind: far[kind].partitions for kind in ("across racks", "leaderless")
    }
    print_assigned_by_broker(one, "GIVEN", everything=False)
    printed = capsys.readouterr().out
    assert "In rack (read in the rack of a replica): 80%." in printed
    assert "across racks: modern-1-unVy: t-4: no replica is in the rack" in " ".join(
        printed.split()
    )


class _Admin:
    """An admin client that lists one group."""

    def __init__(self, group_type: str) -> None:
        self._listed = {"group_id": "g", "protocol_type": "", "group_type": group_type}

    def __enter__(self) -> _Admin:
        return self

    def __exit__(self, *_: object) -> None: ...

    def list_groups(self) -> list[dict[str, str]]:
        return [self._listed]


def _other_group(monkeypatch: pytest.MonkeyPatch, group_type: str, answer: Any) -> Any:
    def ask(*_: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return 1, answer

    monkeypatch.setattr(other_groups, "admin_client", lambda *_: _Admin(group_type))
    monkeypatch.setattr(other_groups, "ask_coordinator", ask)
    return other_groups.other_group("server:9092", "g")


def test_what_the_broker_or_we_do_not_describe_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kafka", reason="no kafka-python: pip install -e '.[kafka]'")
    from kafka import errors

    assert _other_group(monkeypatch, "share", SHARED).described.group_id == "shared"
    assert _other_group(monkeypatch, "Share", errors.IncompatibleBrokerVersion()) is None
    assert _other_group(monkeypatch, "streams", errors.IncompatibleBrokerVersion()) is None
    assert _other_group(monkeypatch, "newest", SHARED) is None
    assert _other_group(monkeypatch, "classic", SHARED) is None


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (SHARED[:5] + b"\0\x1e" + SHARED[7:], "no permission: this user needs Describe on Group s"),
        (SHARED[:5] + b"\0\x45" + SHARED[7:], "Group shared is not described: "),
        (SHARED[:9], r"Group g is not described: response.groups\[0\].groupId: needs"),
    ],
)
def test_a_group_that_is_not_described(
    monkeypatch: pytest.MonkeyPatch, data: bytes, problem: str
) -> None:
    pytest.importorskip("kafka", reason="no kafka-python: pip install -e '.[kafka]'")
    with pytest.raises(GroupError, match=problem):
        _other_group(monkeypatch, "share", data)


# Contract lines -----------------------------------------------------------------------------------


def test_a_line_has_the_target_in_the_order_of_the_description() -> None:
    group = _decoded(CONSUMER, MODERN)
    line = broker_line(group, ())
    assert (line["assignor"], line["generation_id"]) == ("consumer/uniform", 4)
    assert [one["client_id"] for one in line["members"]] == ["modern-1", "modern-0", "modern-2"]
    assert line["members"][1]["owned_partitions"] == [{"topic": "t", "partitions": [1, 3, 5]}]
    assert not any("assigned_partitions" in one for one in line["members"])
    moving = replace(group.members[0], assignment=_described("t0"), member_type=0)
    member = broker_line(replace(group, members=(moving,)), ())["members"][0]
    assert member["owned_partitions"] == line["members"][0]["owned_partitions"]
    assert member["assigned_partitions"] == [{"topic": "t", "partitions": [0]}]
    assert member["is_classic"] is True


def test_a_share_groups_line_has_what_members_own() -> None:
    line = broker_line(_decoded(SHARE, SHARED), ())
    assert line["assignor"] == "share/simple"
    owned = [one["owned_partitions"] for one in line["members"]]
    assert owned == [[{"topic": "t", "partitions": p}] for p in ([0, 2, 4], [1, 3, 5])]


def test_a_line_keeps_a_topic_of_which_all_partitions_were_taken_away() -> None:
    topic_id = "20233c50b0ea49a2a01afefbb7447aa5"
    emptied = f"03{topic_id}02750100{topic_id}0274"
    data = bytes.fromhex(SHARED.hex().replace(f"02{topic_id}0274", emptied, 1))
    line = broker_line(_decoded(SHARE, data), ())
    held = [{"topic": "u", "partitions": []}, {"topic": "t", "partitions": [0, 2, 4]}]
    assert line["members"][0]["owned_partitions"] == held
    topics = [{"name": name, "partitions": 6} for name in ("t", "u")]
    group = GroupSpec.from_dict(line | {"topics": topics})
    assert group.members[0].owned_topics == ("u", "t")
    assert group.to_dict()["members"][0]["owned_partitions"] == held


def test_a_pattern_becomes_the_topics_that_it_matches_as_a_whole() -> None:
    group = _decoded(CONSUMER, MODERN)
    one = replace(group.members[0], subscribed_topic_names=(), subscribed_topic_regex="t.?")
    line = broker_line(replace(group, members=(one, one)), ["u", "t1", "t", "t12"])
    assert [member["topics"] for member in line["members"]] == [["t", "t1"]] * 2
    assert line["members"][0]["topic_regex"] == "t.?"


def test_a_pattern_is_read_as_re2j_reads_it() -> None:
    group = _decoded(CONSUMER, MODERN)
    for regex, found in (
        ("[[:alpha:]]+", ["orders"]),
        (r"\Qa.b\E.*", ["a.b-1"]),
        (r"\w+\z", ["orders"]),
    ):
        one = replace(group.members[0], subscribed_topic_names=(), subscribed_topic_regex=regex)
        line = broker_line(replace(group, members=(one,)), ["orders", "a.b-1", "größe"])
        assert line["members"][0]["topics"] == found


def test_equal_members_with_a_pattern_and_names_are_refused() -> None:
    group = _decoded(CONSUMER, MODERN)
    one = replace(group.members[0], subscribed_topic_names=("u",), subscribed_topic_regex="t")
    with pytest.raises(GroupError, match="patterns and names: not predicted"):
        broker_line(replace(group, members=(one, one)), ["t", "u"])


@pytest.mark.parametrize(
    ("regex", "names", "problem"),
    [
        ("(", (), 'members[0].topic_regex: "(" cannot be resolved here: missing )'),
        ("t", ("u",), "members: different patterns, or patterns and"),
    ],
)
def test_a_pattern_that_is_not_resolved(regex: str, names: tuple[str, ...], problem: str) -> None:
    group = _decoded(CONSUMER, MODERN)
    first = replace(group.members[0], subscribed_topic_regex=regex, subscribed_topic_names=names)
    others = group.members[1:] if names else ()
    with pytest.raises(GroupError) as raised:
        broker_line(replace(group, members=(first, *others)), ["t"])
    assert str(raised.value).startswith(problem)


def test_a_broker_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kafka", reason="no kafka-python: pip install -e '.[kafka]'")
    from kafka import errors

    def ask(*_: Any) -> Any:
        raise errors.IncompatibleBrokerVersion

    monkeypatch.setattr(broker_groups, "ask_broker", ask)
    (found,) = broker_groups.described_groups(None, 0, "share", ["g"]).values()
    assert str(found) == "group_type: share, and the broker is too old to describe it"
    monkeypatch.setattr(broker_groups, "ask_broker", lambda *_: (1, SHARED[:9]))
    (found,) = broker_groups.described_groups(None, 0, "share", ["g"]).values()
    assert str(found).startswith("group_id: response.groups[0].groupId: needs")
