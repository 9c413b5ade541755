# SPDX-License-Identifier: Apache-2.0
"""Leaders with the plug-ins `Balanced` and `Weighted`: weights, rounds, and what is sent."""

from __future__ import annotations

import random
import time
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance import GroupError, Member, Topic, TopicPartition
from kafka_rebalance.wire import consumer_protocol as wire

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("aiokafka", reason="aiokafka is not installed: pip install -e '.[aiokafka]'")

from kafka_rebalance.clients import aiokafka as ours_aiokafka
from kafka_rebalance.clients import balance
from kafka_rebalance.clients import kafka_python as ours_kafka
from kafka_rebalance.clients.balance import Leading, PlugInOptions
from tests import balance_laws
from tests.support.client_members import Aiokafka, Group, KafkaPython
from tests.support.waiting import FAR_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

TP = TopicPartition
TOPICS = (Topic("t", 12),)
HEAVY: dict[tuple[str, int], float] = {
    ("t", p): 100.0 if p in (0, 3, 6) else 1.0 for p in range(12)
}
EVEN = {("t", p): 1.0 for p in range(12)}
CLIENTS: list[tuple[Any, Any]] = [(KafkaPython, ours_kafka), (Aiokafka, ours_aiokafka)]


class Clock:
    """Time that tests set; and weights that tests set, as a source."""

    def __init__(self) -> None:
        self.now, self.weights, self.calls = 1000.0, HEAVY, 0

    def monotonic(self) -> float:
        return self.now

    def __call__(self, _group: str, _partitions: Sequence[TP]) -> Mapping[tuple[str, int], float]:
        self.calls += 1
        return self.weights


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    one = Clock()
    monkeypatch.setattr(balance, "time", one)
    monkeypatch.setattr(Leading, "_start", lambda _: None)  # the tests call read() themselves
    return one


def no_request() -> None:
    raise AssertionError("a rebalance is requested")


def owned(*partitions: int) -> tuple[TP, ...]:
    return tuple(TP("t", p) for p in partitions)


def claiming(**claims: tuple[TP, ...]) -> tuple[Member, ...]:
    return tuple(
        Member(name, ("t",), owned_partitions=tps, generation_id=1) for name, tps in claims.items()
    )


def taken(members: Sequence[Member], answer: Mapping[str, Sequence[TP]]) -> set[TP]:
    """Returns the claimed partitions that their claimant does not get."""
    return {tp for one in members for tp in one.owned_partitions if tp not in answer[one.member_id]}


UNEVEN = claiming(a=owned(0, 1, 2, 3, 4, 5), b=owned(*range(6, 12)), c=())


def leader(clock: Clock, settings: str = "budget=none", **options: Any) -> Leading:
    return Leading(
        PlugInOptions("weighted", settings, clock, is_cooperative=True, **options), no_request
    )


def test_without_weights_nothing_is_taken(clock: Clock) -> None:
    """Partitions without an owner are handed out by their number."""
    members = claiming(a=owned(0, 1, 2, 3, 4, 5), b=owned(6, 7), c=())
    one = leader(clock)
    answer = one.decide("g", TOPICS, members, "")
    assert taken(members, answer) == set()
    assert {who: len(tps) for who, tps in answer.items()} == {"a": 6, "b": 3, "c": 3}
    clock.weights = {("t", 0): float("nan"), ("t", 1): -1.0, ("t", 2): float("inf")}
    one.read()
    clock.now += 61
    assert taken(UNEVEN, one.decide("g", TOPICS, UNEVEN, "")) == set()


def test_weights_older_than_ten_minutes_count_as_missing(clock: Clock) -> None:
    for age, is_taken in ((599, True), (601, False)):
        one = leader(clock)
        one.decide("g", TOPICS, claiming(a=(), b=(), c=()), "")
        one.read()
        clock.now += age
        answer = one.decide("g", TOPICS, UNEVEN, "")
        assert bool(taken(UNEVEN, answer)) is is_taken


def test_a_second_round_takes_nothing_with_other_weights(clock: Clock) -> None:
    """The first round withholds what it takes; the second hands it out as the first decided."""
    one = leader(clock)
    one.decide("g", TOPICS, claiming(a=(), b=()), "")
    one.read()
    first = one.decide("g", TOPICS, UNEVEN, "")
    lost = taken(UNEVEN, first)
    assert lost
    assert lost.isdisjoint(tp for tps in first.values() for tp in tps)
    clock.weights = {("t", p): 1000.0 if p > 9 else 1.0 for p in range(12)}
    one.read()
    clock.now += 3600  # however long the first round's revocations take
    revoked = claiming(**{who: tuple(tps) for who, tps in first.items()})
    second = one.decide("g", TOPICS, revoked, "")
    assert taken(revoked, second) == set()
    assert sorted(tp for tps in second.values() for tp in tps) == list(owned(*range(12)))
    clock.now += 30  # frozen by time
    settled = claiming(**{who: tuple(tps) for who, tps in second.items()})
    assert one.decide("g", TOPICS, settled, "") == second
    clock.now += 3600
    one.read()
    assert taken(settled, one.decide("g", TOPICS, settled, ""))


def test_a_second_round_takes_no_more_if_a_member_missed_the_first() -> None:
    """Its claims are still the old ones: computed again from them, the target would be another."""
    rng = random.Random(3)
    for _ in range(100):
        weights = {("t", p): rng.expovariate(0.1) for p in range(12)}
        options = PlugInOptions("weighted", "budget=20%", weights, is_cooperative=True)
        one = Leading(options, no_request)
        claims = {name: owned(*range(12)[n::3]) for n, name in enumerate("abc")}
        first = one.decide("g", TOPICS, claiming(**claims), "")
        lost = taken(claiming(**claims), first)
        missed = rng.choice("abc")
        claims |= {who: tuple(tps) for who, tps in first.items() if who != missed}
        second = one.decide("g", TOPICS, claiming(**claims), "")
        assert taken(claiming(**claims), second) <= lost


@pytest.mark.parametrize("assignor", ["balanced", "weighted"])
def test_random_groups_settle_in_two_rounds_and_nobody_shares(assignor: str, clock: Clock) -> None:
    """Also with a new leader in each round, as after a leader's death."""
    rng = random.Random(assignor)
    for _ in range(150):
        clock.weights = {("t", p): rng.choice((0.0, 1.0, rng.expovariate(0.1))) for p in range(12)}
        names = [f"m{n}" for n in range(rng.randint(1, 5))]
        claims: dict[str, tuple[TP, ...]] = dict.fromkeys(names, ())
        for p in range(12):
            for name in rng.sample(names, rng.choice((0, 1, 1, 1))):
                claims[name] += owned(p)
        options = PlugInOptions(assignor, "", dict(clock.weights), is_cooperative=True)
        one = Leading(options, no_request)
        for n in range(2):
            members = claiming(**claims)
            if n and rng.random() < 0.5:
                one = Leading(options, no_request)  # hysteresis is all that a new leader has
            given = one.decide("g", TOPICS, members, "")
            gained = {tp for who, tps in given.items() for tp in tps if tp not in claims[who]}
            assert gained.isdisjoint(tp for tps in claims.values() for tp in tps)
            if n and assignor == "balanced":
                assert taken(members, given) == set()
            claims = {who: tuple(tps) for who, tps in given.items()}
        if assignor == "balanced":
            assert sorted(tp for tps in claims.values() for tp in tps) == list(owned(*range(12)))


@pytest.mark.parametrize("file", balance_laws.FILES, ids=lambda file: file.name)
def test_the_laws_of_two_rounds(file: Path) -> None:
    """`python -m tests.balance_laws` prints how often each law was checked."""
    for group in islice(balance_laws.groups(file), 40):
        assert all(holds for _, holds in balance_laws.laws(group)), group.group_id


def test_a_claim_repeated_against_two_answers_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    """b goes on claiming what it was told to revoke, unlike a member that missed an answer."""
    one = Leading(PlugInOptions("balanced", is_cooperative=True), no_request)
    a, b = owned(0, 1, 2), owned(3, *range(4, 12))
    for generation in range(1, 5):
        members = (
            Member("a", ("t",), owned_partitions=a, generation_id=generation),
            Member("b", ("t",), owned_partitions=b, generation_id=generation),
        )
        answer = one.decide("g", TOPICS, members, "")
        one.end_round()
        lost = set(b) - set(answer["b"])
        assert len(lost) == 3
        assert lost.isdisjoint(answer["a"]) is (generation < 4)
    assert set(a) | lost == set(answer["a"])
    assert caplog.text.count("after two answers against it; ignored") == 3


def test_members_without_a_partition_get_a_share_beyond_the_budget(clock: Clock) -> None:
    """As after members started one after another: without weights, the first one keeps all."""
    members = claiming(a=owned(*range(12)), b=(), c=())
    asked: list[float] = []
    options = PlugInOptions("weighted", "budget=1", clock, is_cooperative=True)
    one = Leading(options, lambda: asked.append(clock.now))
    assert taken(members, one.decide("g", TOPICS, members, "")) == set()
    for _ in range(3):
        clock.now += 10
        one.read()
    assert asked == [1010.0]  # once
    first = one.decide("g", TOPICS, members, "")
    assert len(first["a"]) <= 4
    revoked = claiming(a=tuple(first["a"]), b=(), c=())
    second = one.decide("g", TOPICS, revoked, "")
    assert all(len(tps) >= 3 for tps in second.values())
    assert taken(revoked, second) == set()


def test_the_share_of_a_member_without_a_partition_is_one_of_load() -> None:
    weights = {("t", p): 10.0 if p in (0, 1, 6, 7) else 1.0 for p in range(12)}
    one = Leading(PlugInOptions("weighted", "", weights, is_cooperative=True), no_request)
    one.decide("g", TOPICS, UNEVEN[:2], "")
    answer = one.decide("g", TOPICS, UNEVEN, "")
    lost = taken(UNEVEN, answer)
    assert len(lost) == 2
    assert all(weights[tp] == 10 for tp in lost)


def test_a_stale_claim_withholds() -> None:
    members = (
        Member("a", ("t",), owned_partitions=owned(0, 1), generation_id=7),
        Member("b", ("t",), owned_partitions=owned(2, 3, 0), generation_id=3),
    )
    one = Leading(PlugInOptions("balanced", is_cooperative=True), no_request)
    answer = one.decide("g", (Topic("t", 4),), members, "")
    assert answer["a"] == list(owned(0, 1))  # a claims it in the newest generation
    members = (members[1], Member("c", ("t",)))
    answer = one.decide("g", (Topic("t", 4),), members, "")
    assert TP("t", 1) in answer["c"]
    assert not set(answer["c"]) & set(owned(0, 2, 3))


def test_the_leader_requests_a_rebalance_when_it_pays_three_times(clock: Clock) -> None:
    asked: list[float] = []
    options = PlugInOptions("weighted", "budget=none", clock, 900.0, is_cooperative=True)
    one = Leading(options, lambda: asked.append(clock.now))
    clock.weights = EVEN
    one.decide("g", TOPICS, claiming(a=(), b=(), c=()), "")
    for _ in range(30):
        clock.now += 60
        one.read()
    assert asked == []  # it would not pay
    clock.weights = HEAVY
    for n in range(1, 4):
        assert asked == [], n
        clock.now += 60
        one.read()
    assert asked == [clock.now]


def test_no_rebalance_is_requested_by_default(clock: Clock) -> None:
    asked: list[float] = []
    one = Leading(PlugInOptions("weighted", "budget=none", clock), lambda: asked.append(1.0))
    one.decide("g", TOPICS, claiming(a=(), b=(), c=()), "")
    for _ in range(30):
        clock.now += 60
        one.read()
    assert asked == []
    assert clock.calls == 30


def test_a_source_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def source(*_: Any) -> Any:
        raise RuntimeError("no route")

    one = Leading(PlugInOptions("weighted", weights=source), no_request)
    one.decide("g", TOPICS, UNEVEN, "")  # starts the thread, which reads
    one.read()
    assert "the weights cannot be read: no route" in caplog.text


def test_only_the_leader_of_the_last_rebalance_reads_weights() -> None:
    calls: list[str] = []

    def source(group_id: str, partitions: Sequence[TP]) -> Any:
        calls.append(group_id)
        assert [p.partition for p in partitions] == list(range(12))
        return EVEN

    one = Leading(PlugInOptions("weighted", weights=source), lambda: None)
    one.decide("g", TOPICS, UNEVEN, "")
    thread = one._thread
    assert thread is not None
    deadline = time.monotonic() + 20
    while not one.fresh(time.monotonic()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert one.fresh(time.monotonic()) == EVEN
    one.end_round()  # it led this one
    assert thread.is_alive()
    one.end_round()  # another member led
    thread.join(FAR_S)
    assert not thread.is_alive()
    assert calls == ["g"]
    assert one.fresh(time.monotonic()) == {}


@pytest.mark.parametrize(("client", "ours"), CLIENTS)
@pytest.mark.parametrize("name", ["Balanced", "Weighted"])
def test_members_of_the_clients_settle(client: Any, ours: Any, name: str) -> None:
    """Real coordinators: all is read, evenly; a member that leaves moves only its partitions."""
    strategy = getattr(ours, name)
    members = [client(f"m{n}", [strategy()], ["t"], TOPICS) for n in range(3)]
    listed = strategy().name
    assert listed.startswith("kafka-rebalance/")
    assert listed.endswith("-eager") is (client is Aiokafka)
    group = Group(listed, members)
    group.settle(within=3)
    before = [set(one.held) for one in members]
    assert [len(one) for one in before] == [4, 4, 4]
    group.members.pop()
    group.settle(within=2)
    assert all(was <= one.held for was, one in zip(before, group.members, strict=False))
    assert [len(one.held) for one in group.members] == [6, 6]
    sent = wire.decode_subscription(group.members[0].join(listed))
    assert (sent.user_data is None) is (client is KafkaPython)
    assert (sent.version, sent.generation_id) == (3, group.generation)


@pytest.mark.parametrize(("client", "ours"), CLIENTS)
def test_weights_move_partitions_of_real_members(client: Any, ours: Any) -> None:
    """By count, one of three members would have 301 of 309: it gets every third partition."""
    strategy = ours.Weighted(HEAVY, "budget=none")
    members = [client(f"m{n}", [strategy], ["t"], TOPICS) for n in range(3)]
    group = Group(strategy.name, members)
    group.settle(within=3)
    loads = sorted(sum(HEAVY[tp] for tp in one.held) for one in members)
    assert loads[-1] <= 108


def test_a_group_comes_from_cooperative_sticky_and_goes_back() -> None:
    """One rolling restart each way; claims carry over, so nothing moves."""
    both = [ours_kafka.Balanced(), ours_kafka.CooperativeSticky()]
    members = [KafkaPython(f"m{n}", both, ["t"], TOPICS) for n in range(3)]
    group = Group("cooperative-sticky", members)
    group.settle(within=3)
    for listed in ("kafka-rebalance/balanced", "cooperative-sticky"):
        before = [set(one.held) for one in members]
        group.assignor = listed
        group.settle(within=1)
        assert [one.held for one in members] == before


def test_wrong_settings_are_refused_when_the_plug_in_is_made() -> None:
    with pytest.raises(GroupError, match="wrong setting"):
        ours_kafka.Weighted(settings="budget=lots")
    with pytest.raises(GroupError, match="assignor"):
        ours_aiokafka.Balanced("tolerance=5%")
    with pytest.raises(ValueError, match="rebalance_every: 5 is too short; give more than 60"):
        ours_kafka.Weighted(rebalance_every=5)
