# SPDX-License-Identifier: Apache-2.0
"""Changes: their grammar, their effect on a group, and errors for changes that do not fit."""

from __future__ import annotations

import re

import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupError, GroupSpec, Member, Topic, TopicPartition
from kafka_rebalance.bulk import plan_batch
from kafka_rebalance.plans.changes import apply, change_from_text

UUID = "0b5c2d1e-0000-4000-8000-123456789abc"
GROUP = GroupSpec(
    "payments",
    topics=(Topic("orders", 3, (("a",), ("b",), ("a", None))), Topic("refunds", 2)),
    members=(
        Member(
            f"app-{UUID}", ("orders",), client_id="app", rack_id="a",
            owned_partitions=(TopicPartition("orders", 0),), generation_id=4,
        ),
        Member("w-1-id", ("orders", "refunds"), "w-1", "worker", rack_id="b"),
        Member("w-2-id", ("refunds",), "w-2", "worker"),
    ),
    assignor="range",
)  # fmt: skip

TEXTS = {
    "add-members=2": kr.AddMembers(2),
    "add-members=1,rack=b,like=w-1": kr.AddMembers(1, like="w-1", rack="b"),
    "add-members=3,client-id=app-4": kr.AddMembers(3, client_id="app-4"),
    "add-members=1,rack=b,client-id=c,instance-id=i,like=w-1": kr.AddMembers(
        1, like="w-1", rack="b", client_id="c", instance_id="i"
    ),
    "add-members=1,like=odd, name=x": kr.AddMembers(1, like="odd, name=x"),
    "remove-members=2": kr.RemoveMembers(2),
    "remove-member=w-1": kr.RemoveMembers(member="w-1"),
    "remove-rack=b": kr.RemoveMembers(rack="b"),
    "remove-client=worker": kr.RemoveMembers(client_id="worker"),
    "partitions orders=24": kr.AddPartitions("orders", 24),
    "add-topics audit=3,log=1": kr.AddTopics((("audit", 3), ("log", 1))),
    "remove-topics=orders,refunds": kr.RemoveTopics(("orders", "refunds")),
    "resubscribe=orders": kr.Resubscribe(("orders",)),
    "resubscribe=a:b:orders,refunds": kr.Resubscribe(("orders", "refunds"), "a:b"),
    "switch-assignor=sticky": kr.SwitchAssignor("sticky"),
    "bounce-members=*": kr.BounceMembers(),
    "bounce-members=w-1,static": kr.BounceMembers("w-1", static=True),
    "bounce-members=*,dynamic": kr.BounceMembers(static=False),
    "bounce-members=*,away=5s": kr.BounceMembers(away_ms=5_000),
    "bounce-members=w-1,dynamic,away=90s": kr.BounceMembers("w-1", static=False, away_ms=90_000),
    "bounce-members=*,away=250ms": kr.BounceMembers(away_ms=250),
    "bounce-members=*,away=0s": kr.BounceMembers(away_ms=0),
}


@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_read_and_written_back(text: str) -> None:
    change = change_from_text(text)
    assert change == TEXTS[text]
    assert str(change) == text


def test_the_keys_of_new_members_have_any_order() -> None:
    (first, second) = (
        change_from_text(f"add-members=1,{keys}")
        for keys in ("like=w-1,instance-id=i,rack=b", "rack=b,instance-id=i,like=w-1")
    )
    assert first == second == kr.AddMembers(1, like="w-1", rack="b", instance_id="i")


def test_the_model_may_be_named_in_any_place() -> None:
    read = change_from_text("add-members=1,like=w-1,instance-id=x,rack=b")
    assert read == kr.AddMembers(1, like="w-1", rack="b", instance_id="x")
    for engine in ("rust", "reference"):
        plan = kr.plan(GROUP, None, ["add-members=1,like=w-1,rack=c"], engine=engine)
        assert plan.final.members[-1].rack_id == "c"
    with pytest.raises(kr.GroupError, match="like= is there twice"):
        change_from_text("add-members=1,like=a,like=b")


def test_either_separator_and_space_around() -> None:
    assert change_from_text(" partitions=orders=24\n") == kr.AddPartitions("orders", 24)
    assert change_from_text("add-members 2") == kr.AddMembers(2)
    assert change_from_text("bounce-members") == kr.BounceMembers()


BAD = {
    "": "begins with none of add-members, ",
    "hop=1": '"hop=1" begins with none of ',
    "add-members": '"" is not a number of members',
    "add-members=0": "0 is not a number of members from 1 to 100000",
    "add-members=1000000": "1000000 is not a number of members from 1 to 100000",
    "add-members=1,like=C9": 'no member has the member_id or group_instance_id "C9"',
    "remove-members=0": "0 is not a number of members from 1 on",
    "remove-members=4": "4 is not a number of members from 1 to 3",
    "remove-member=": "a value is missing, as in add-members=2",
    "remove-member=C9": 'no member has the member_id or group_instance_id "C9"',
    "remove-rack=z": 'no member and no replica is in rack "z"',
    "add-members=1,rack=a,rack=b": "rack= is there twice",
    "add-members=1,like=a,rack=b,like=c": "like= is there twice",
    "add-members=2,racks=b": '"racks" is not a key; the keys are rack, client-id, instance-id, lik',
    "add-members=2,": '"" is not a key; the keys are rack, ',
    "add-members=x,3,rack=a": '"3" is not a key; the keys are rack, ',
    "add-members=1,client-id=": "client-id is empty; name the first of the new members",
    "add-members=1,instance-id=": "instance-id is empty; name the first of the new members",
    "add-members=1,instance-id=w-1": '"w-1" is the instance id of a member already',
    "remove-client=z": 'no member has the client_id "z"',
    "partitions=orders": '"orders" is not TOPIC=N',
    "partitions nothing=3": 'the group has no topic "nothing"',
    "partitions orders=0": "0 is not a number of partitions from 1 on",
    "partitions orders=3": '"orders" has 3 partitions already',
    "partitions orders=2": '"orders" has 3 partitions already',
    "partitions orders=99999999": "100000001 partitions in all, more than the limit of 10000000",
    "add-topics orders=1": '"orders" is there already',
    "add-topics new=1,new=1": '"new" is there already',
    "remove-topics=": '"" is not TOPIC,TOPIC,…',
    "remove-topics=nothing": 'the group has no topic "nothing"',
    "resubscribe=nothing": 'the group has no topic "nothing"',
    "resubscribe=C9:orders": 'no member has the member_id or group_instance_id "C9"',
    "switch-assignor=range": '"range" is the group\'s assignor already',
    "switch-assignor=rnage": '"rnage" is not known; known are range,',
    "bounce-members=*,away=5": '"5" is not a duration; 250ms, 5s, 2m and 1h are',
    "bounce-members=*,away=": '"" is not a duration; ',
    "bounce-members=*,away=1.5s": '"1.5s" is not a duration; ',
    "bounce-members=*,away=25d": "away is more than 2147483647 milliseconds",
    "bounce-members=*,away=9999999999999999s": '"9999999999999999s" is not a duration; ',
    "bounce-members=C9": 'no member has the member_id or group_instance_id "C9"',
}


@pytest.mark.parametrize("text", BAD)
def test_a_change_that_does_not_fit_is_a_clear_error(text: str) -> None:
    with pytest.raises(GroupError, match=re.escape(BAD[text])) as raised:
        apply(change_from_text(text), GROUP)
    assert raised.value.path == "change"
    with pytest.raises(GroupError) as raised:
        kr.plan(GROUP, None, ["remove-members=1", "add-members=1,like=w-1", text])
    assert raised.value.path == "changes[2]"


@pytest.mark.parametrize(
    "text",
    [
        *("add-members=2,racks=b", "add-members=2,", "add-members=x,3,rack=a", "add-members=0"),
        *("remove-members=0", "partitions orders=0"),
        *("switch-assignor=rnage", "switch-assignor=stream"),
        *("add-members=1,like=a,rack=b,like=c", "add-members=1,like=a,x=b,rack=c,rack=d"),
        *("bounce-members=*,away=5", "bounce-members=*,away=", "bounce-members=*,away=1.5s"),
        *("bounce-members=*,away=25d", "bounce-members=*,away=99999999999999999999999s"),
        *("bounce-members=*,away=99999999999999d", "bounce-members=*,away=s"),
    ],
)
def test_a_text_that_fits_no_group_is_one_error_in_both_engines(text: str) -> None:
    """Such a text is an error before an earlier change is left out."""
    pytest.importorskip("pyarrow")
    with pytest.raises(GroupError) as raised:
        change_from_text(text)
    (row,) = plan_batch([GROUP], None, ["remove-topics=nothing", text]).to_pylist()
    assert row["error"] == f"changes[1]: {raised.value.problem}"


def test_remove_members_takes_exactly_one_selection() -> None:
    with pytest.raises(GroupError, match="say which members"):
        apply(kr.RemoveMembers(1, rack="a"), GROUP)


def after(text: str) -> GroupSpec:
    return apply(change_from_text(text), GROUP)


def test_new_members_copy_the_last_member_or_the_named_one() -> None:
    group = after("add-members=2")
    assert [m.group_instance_id for m in group.members[3:]] == ["w-3", "w-4"]
    assert all(re.fullmatch(r"w-[34]-[0-9a-f-]{36}", m.member_id) for m in group.members[3:])
    assert {(m.topics, m.rack_id) for m in group.members[3:]} == {(("refunds",), None)}
    one = after(f"add-members=1,rack=c,like=app-{UUID}").members[3]
    assert re.fullmatch(
        r"app-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f-]{16}", one.member_id
    )
    assert (one.group_instance_id, one.rack_id, one.owned_partitions) == (None, "c", ())
    assert after("add-members=2") == group  # a second call makes up equal names
    assert len({m.member_id for m in apply(kr.AddMembers(2), group).members}) == 7


def test_removals() -> None:
    def left(text: str) -> list[str]:
        return [member.member_id[:3] for member in after(text).members]

    assert left("remove-members=2") == ["app"]
    assert left("remove-member=w-1") == ["app", "w-2"]
    assert left(f"remove-member=app-{UUID}") == ["w-1", "w-2"]
    assert left("remove-rack=a") == ["w-1", "w-2"]
    assert left("remove-client=worker") == ["app"]


def test_topics_and_subscriptions() -> None:
    assert after("partitions orders=5").topics[0] == Topic(
        "orders", 5, (("a",), ("b",), ("a", None), ("b",), ("a",))
    )
    grown = after("add-topics audit=3")
    assert grown.topics[2] == Topic("audit", 3)
    assert all("audit" in member.topics for member in grown.members)
    smaller = after("remove-topics=refunds")
    assert [topic.name for topic in smaller.topics] == ["orders"]
    assert [m.topics for m in smaller.members] == [("orders",), ("orders",), ()]
    assert {m.topics for m in after("resubscribe=refunds").members} == {("refunds",)}
    assert [m.topics for m in after("resubscribe=w-2:orders,refunds").members][2] == (
        "orders",
        "refunds",
    )


def test_bounces() -> None:
    group = after("bounce-members")
    assert [m.group_instance_id for m in group.members] == ["w-1", "w-2", None]
    assert {m.member_id for m in group.members}.isdisjoint(m.member_id for m in GROUP.members)
    assert group.members[2].owned_partitions == ()
    quiet = after("bounce-members=*,static")
    assert [m.owned_partitions for m in quiet.members] == [
        m.owned_partitions for m in GROUP.members
    ]
    assert quiet.members[0].member_id == GROUP.members[0].member_id
    assert after("bounce-members=w-1,dynamic").members[2].group_instance_id == "w-1"


def test_switching() -> None:
    assert after("switch-assignor=sticky").assignor == "sticky"


# Names of new members -----------------------------------------------------------------------------


def called(client_ids: list[str | None], text: str) -> list[str]:
    """Returns the new members' ids without the UUID, in a group of dynamic members."""
    members = tuple(
        Member(f"{'m' if one is None else one}-{UUID[:-2]}{n:02d}", ("orders",), client_id=one)
        for n, one in enumerate(client_ids)
    )
    group = GroupSpec("g", (Topic("orders", 3),), members, "range")
    new = apply(change_from_text(text), group).members[len(members) :]
    assert all(re.fullmatch(r".+-[0-9a-f-]{36}", member.member_id) for member in new)
    named = [one.client_id for one in new if one.client_id is not None]
    assert named in ([], [one.member_id[:-37] for one in new])
    return [member.member_id[:-37] for member in new]


def test_newcomers_are_called_as_the_next_of_their_kind() -> None:
    """Client ids can be numbered, shared by all, or numbered within each process."""
    pods = [f"orders-{n}" for n in range(1, 10)]
    assert called([*pods], "add-members=2") == ["orders-10", "orders-11"]
    # The highest number counts, not that of the last member.
    assert called([*reversed(pods)], "add-members=1") == ["orders-10"]
    threads: list[str | None] = [f"consumer-orders-{n}" for n in (1, 2, 3)]
    assert called(threads, "add-members=1") == ["consumer-orders-4"]
    assert called(["app", "app", "app"], "add-members=2") == ["app", "app"]
    processes: list[str | None] = ["consumer-orders-1", "consumer-orders-2", "consumer-orders-1"]
    assert called(processes, "add-members=1") == ["consumer-orders-1"]
    assert called(["app"], "add-members=1") == ["app"]
    assert called(["app-7"], "add-members=1") == ["app-8"]
    assert called(["alpha", "beta"], "add-members=2") == ["beta", "beta"]
    assert called(["a-008", "a-009"], "add-members=1") == ["a-010"]
    assert called([None, None], "add-members=1") == ["m"]


def test_newcomers_have_the_names_that_a_change_gives() -> None:
    pods: list[str | None] = ["orders-1", "orders-2"]
    assert called(pods, "add-members=2,client-id=orders-7") == ["orders-7", "orders-8"]
    assert called(pods, "add-members=2,client-id=tail") == ["tail", "tail"]
    static = apply(change_from_text("add-members=2,instance-id=s-4"), GROUP).members[3:]
    assert [one.group_instance_id for one in static] == ["s-4", "s-5"]
    assert [one.client_id for one in static] == ["worker", "worker"]
    named = apply(change_from_text("add-members=2,instance-id=s"), GROUP).members[3:]
    assert [one.group_instance_id for one in named] == ["s", "s-2"]


# A lost rack --------------------------------------------------------------------------------------


def test_a_lost_rack_takes_its_replicas_along() -> None:
    """The rack's brokers are lost: partitions with all replicas there have no leader."""
    plan = kr.plan(GROUP, None, ["remove-rack=b"])
    assert plan.final.topics[0].racks == (("a",), (), ("a", None))
    assert plan.leaderless == (TopicPartition("orders", 1),)
    # A partition without a leader is still in the metadata, so it is still assigned.
    assert [m for m, owned in plan.after.items() if ("orders", 1) in owned] == [f"app-{UUID}"]
    gone = GROUP.edited(members=(GROUP.members[0], *(GROUP.members[2:])))
    only_replicas = kr.plan(gone, None, ["remove-rack=b"])
    assert len(only_replicas.final.members) == 2
    assert only_replicas.figures().leaderless == 1
    # A leader with a rack (here "app") starts a rebalance when the racks of replicas change.
    assert len(only_replicas.rounds) == 1
    unplaced = gone.edited(members=(gone.members[1],), topics=gone.topics)
    assert kr.plan(unplaced, None, ["remove-rack=b"]).rounds == ()


def test_members_of_a_lost_rack_are_missed_only_when_their_sessions_end() -> None:
    plan = kr.plan(GROUP, None, ["remove-rack=a"])
    assert plan.steps[0].waiting == (TopicPartition("orders", 0),)
    assert plan.figures().waiting == 1


def test_a_change_of_something_that_the_group_lacks_does_not_affect_it() -> None:
    for text in (
        *("partitions nothing=3", "remove-topics=nothing", "resubscribe=nothing"),
        *("remove-rack=z", "remove-client=z", "remove-member=C9", "bounce-members=C9"),
        *("add-members=1,like=C9", "resubscribe=C9:orders"),
    ):
        with pytest.raises(kr.NotAffected):
            apply(change_from_text(text), GROUP)
        with pytest.raises(kr.NotAffected, match=r"changes\[1\]"):
            kr.plan(GROUP, None, ["add-members=1", text])
    with pytest.raises(GroupError) as raised:
        apply(change_from_text("partitions orders=2"), GROUP)
    assert not isinstance(raised.value, kr.NotAffected)
