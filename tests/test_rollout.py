# SPDX-License-Identifier: Apache-2.0
"""`rollout`: manifests, Kubernetes' controllers by hand, forecasts, and the gate."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import kafka_rebalance as kr
from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.errors import NotReachedError
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.rollout import (
    Assumed,
    ReadinessProbe,
    Workload,
    controllers,
    differences,
    forecast,
    read_manifest,
    rollout,
)
from kafka_rebalance.rollout.controllers import roll
from kafka_rebalance.rollout.variants import Variant
from tests.support.imports import ROOT
from tests.support.planned_groups import captured
from tests.support.prompt import command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SAMPLE = captured()
ROLLING, CONTAINERS = "spec.strategy.rollingUpdate", "spec.template.spec.containers"
PROBE, AT_LINE, NO_NUMBER = "readinessProbe", "is not YAML at line", "is not a number"
ASSUMED = Assumed(pod_start_ms=1_000, start_up_ms=4_000, shut_down_ms=500)


def manifest(kind: str = "Deployment", replicas: int = 3, **spec: Any) -> str:
    pod = {"containers": [{"name": "app"}], **spec.pop("pod", {})}
    given = {"replicas": replicas, **spec, "template": {"spec": pod}}
    return yaml.safe_dump({"kind": kind, "metadata": {"name": "app"}, "spec": given})


def workload(kind: str = "Deployment", replicas: int = 3, **fields: Any) -> Workload:
    return Workload(kind=kind, name="app", replicas=replicas, **fields)


def formed(
    members: int, partitions: int, assignor: str = "range", *, static: bool = False
) -> kr.GroupSpec:
    ids = [f"app-{n}" for n in range(members)]
    group = kr.GroupSpec(
        "g",
        (kr.Topic("t", partitions, topic_id="AAAAAAAAAAEAAAAAAAAAAg"),),
        tuple(kr.Member(one, ("t",), group_instance_id=one if static else None) for one in ids),
        assignor,
    )
    return group.owning(kr.assign(group), generation_id=1)


# Manifests ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "rolling", "surge", "unavailable"),
    [
        (3, {}, 1, 1),  # 25% of 3 is 0.75: up for the surge, down to 0, but 1 of 4 would do
        (10, {}, 3, 2),
        (10, {"maxSurge": "1%", "maxUnavailable": "99%"}, 1, 9),
        (4, {"maxSurge": 0, "maxUnavailable": 0}, 0, 1),
        (4, {"maxSurge": 0, "maxUnavailable": "10%"}, 0, 1),
        (4, {"maxSurge": "100%", "maxUnavailable": 0}, 4, 0),
        (2, {"maxUnavailable": 5}, 1, 2),
    ],
)
def test_percentages_are_rounded_as_kubernetes_does(
    replicas: int, rolling: dict[str, Any], surge: int, unavailable: int
) -> None:
    text = manifest(replicas=replicas, strategy={"rollingUpdate": rolling})
    found = read_manifest(text)
    expected = 0 if (replicas, rolling) == (3, {}) else unavailable
    assert (found.max_surge, found.max_unavailable) == (surge, expected)


def test_the_fields_of_a_stateful_set_and_its_pods() -> None:
    container = {
        "name": "app",
        "readinessProbe": {"initialDelaySeconds": 5, "successThreshold": 2},
        "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "sleep 7; true"]}}},
    }
    text = manifest(
        "StatefulSet",
        5,
        minReadySeconds=4,
        podManagementPolicy="Parallel",
        updateStrategy={"rollingUpdate": {"partition": 2, "maxUnavailable": "50%"}},
        pod={"containers": [container], "terminationGracePeriodSeconds": 60},
    )
    found = read_manifest(f"kind: Service\n---\n{text}---\n")
    assert found == Workload(
        kind="StatefulSet", name="app", replicas=5, max_unavailable=2, partition=2,
        is_parallel=True, min_ready_ms=4_000, grace_ms=60_000, pre_stop_ms=7_000,
        probes=(ReadinessProbe(5_000, 10_000, 2),),
    )  # fmt: skip
    slept = {"name": "app", "lifecycle": {"preStop": {"sleep": {"seconds": 3}}}}
    assert read_manifest(manifest(pod={"containers": [slept]})).pre_stop_ms == 3_000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "documents: there is no Deployment or StatefulSet; a chart must be rendered first"),
        ("a: b\n---\n- 1", "documents[1]: a list is not an object"),
        (
            "a: b\n---\n[",
            f"documents[1]: {AT_LINE} 3: expected the node content, but found '<stream end>'",
        ),
        (
            "a: {{ .Values.a }}",
            f"documents[0]: {AT_LINE} 1: found unhashable key; a chart must be rendered first",
        ),
        ("[" * 5_000, "documents[0]: is not YAML: a value that YAML does not allow"),
        ("a: 2001-99-99", "documents[0]: is not YAML: a value that YAML does not allow"),
        (
            manifest(replicas=0),
            "documents[0].spec.replicas: 0 pods have no members: nothing happens",
        ),
        (manifest(replicas=True), "documents[0].spec.replicas: a boolean is not a number"),
        (manifest(replicas=-1), "documents[0].spec.replicas: -1 is not a number from 0 to 1000000"),
        (
            "a: b\n---\n" + manifest(strategy={"rollingUpdate": {"maxSurge": "1.5%"}}),
            f'documents[1].{ROLLING}.maxSurge: "1.5%" is not a number or a percentage as 25% is',
        ),
        (
            manifest(strategy=[]),
            "documents[0].spec.strategy: a list is not an object",
        ),
        (
            manifest("StatefulSet", updateStrategy={"type": "OnDelete"}),
            'documents[0].spec.updateStrategy.type: "OnDelete" is not one of RollingUpdate',
        ),
        (
            manifest(pod={"containers": [1]}),
            f"documents[0].{CONTAINERS}[0]: a number is not an object",
        ),
        (
            manifest(pod={"containers": [{"readinessProbe": {"periodSeconds": 0}}]}),
            f"documents[0].{CONTAINERS}[0].{PROBE}.periodSeconds: 0 {NO_NUMBER} from 1 to 1000000",
        ),
        ("kind: Deployment", "documents[0].metadata.name: is missing"),
    ],
)
def test_an_error_names_the_document_and_the_path(text: str, problem: str) -> None:
    with pytest.raises(kr.GroupError) as raised:
        read_manifest(text)
    assert str(raised.value) == problem


def test_one_of_several_workloads_and_documents_after_it_that_are_bad() -> None:
    other = manifest("StatefulSet").replace("name: app\nspec", "name: other\nspec")
    bad: list[str] = []
    text = f"{manifest()}---\n{other}---\n- 1\n---\n]"
    assert read_manifest(text, name="other", on_bad=bad.append).is_stateful
    assert [one.partition(":")[0] for one in bad] == ["documents[2]", "documents[3]"]
    for name, problem in (
        (None, 'documents: name one of "app", "other"'),
        ("x", "name: no workload"),
    ):
        with pytest.raises(kr.GroupError, match=problem):
            read_manifest(f"{manifest()}---\n{other}", name=name)
    assert read_manifest(manifest(), replicas=9).replicas == 9


# Controllers --------------------------------------------------------------------------------------


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pod takes exactly the assumed times."""
    monkeypatch.setattr(controllers, "VARIES", 0)


def timeline(one: Workload, assumed: Assumed = ASSUMED) -> tuple[list[int], list[int]]:
    """Returns when old pods end, and when new ones join, in order."""
    rolled = roll(one, assumed, Random(1))
    assert rolled.ends.keys() == {*range(one.partition, one.replicas)}
    return sorted(e.at_ms for e in rolled.ends.values()), sorted(p.joins_ms for p in rolled.pods)


@pytest.mark.usefixtures("exact")
def test_a_deployment_surges_or_makes_room_first() -> None:
    surges = workload(max_surge=1, max_unavailable=0)
    # A pod without a probe is ready when its container runs, before its consumer joins.
    assert timeline(surges) == ([1_500, 2_500, 3_500], [5_000, 6_000, 7_000])
    makes_room = workload(max_surge=0, max_unavailable=1)
    assert timeline(makes_room) == ([500, 1_500, 2_500], [5_000, 6_000, 7_000])
    at_once = workload(max_surge=3, max_unavailable=0)
    assert timeline(at_once) == ([1_500] * 3, [5_000] * 3)
    waits = replace(surges, min_ready_ms=10_000)
    assert timeline(waits) == ([11_500, 22_500, 33_500], [5_000, 16_000, 27_000])
    assert timeline(workload(strategy="Recreate")) == ([500] * 3, [5_500] * 3)


@pytest.mark.usefixtures("exact")
def test_a_probe_makes_a_pod_ready_after_its_start() -> None:
    probed = read_manifest(
        manifest(
            strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            pod={"containers": [{"readinessProbe": {"periodSeconds": 2}}]},
        )
    )
    ends, joins = timeline(probed)
    for joined, ended, after in zip(joins, ends, [*joins[1:], 10**9], strict=True):
        assert 0 <= ended - 500 - joined < 2_000
        assert after >= ended - 500 + 5_000


@pytest.mark.usefixtures("exact")
def test_a_stateful_set_goes_from_the_highest_ordinal_down() -> None:
    one = workload("StatefulSet", partition=1)
    rolled = roll(one, ASSUMED, Random(1))
    assert [pod.replaces for pod in rolled.pods] == [2, 1]
    assert timeline(one) == ([500, 2_000], [5_500, 7_000])
    assert rolled.restart_ms == 5_000
    batches = workload("StatefulSet", 4, max_unavailable=2)
    rolled = roll(batches, ASSUMED, Random(1))
    assert [pod.replaces for pod in rolled.pods] == [2, 3, 0, 1]
    # 0.5 s to end both, then one after another; then the next two.
    assert timeline(batches) == ([500, 500, 3_000, 3_000], [5_500, 6_500, 8_000, 9_000])
    assert rolled.restart_ms == 6_000
    parallel = replace(batches, is_parallel=True)
    assert timeline(parallel) == ([500, 500, 2_000, 2_000], [5_500, 5_500, 7_000, 7_000])


@pytest.mark.parametrize(
    ("on_sigterm", "shut_down_s", "pre_stop_s", "grace_s", "ends_s", "is_killed"),
    [
        ("closes", 1, 0, 30, 1, False),
        ("closes", 1, 5, 30, 6, False),
        ("closes", 40, 0, 30, 30, True),
        ("closes", 1, 60, 30, 31, False),  # 2 s are left after preStop
        ("closes", 3, 60, 30, 32, True),
        ("dies", 9, 5, 30, 5, True),
        ("ignores", 9, 5, 30, 30, True),
        ("closes", 9, 5, 0, 0, True),
    ],
)
@pytest.mark.usefixtures("exact")
def test_how_a_pod_ends(
    on_sigterm: str, shut_down_s: int, pre_stop_s: int, grace_s: int, ends_s: int, is_killed: bool
) -> None:
    one = workload(replicas=1, grace_ms=1000 * grace_s, pre_stop_ms=1000 * pre_stop_s)
    assumed = replace(ASSUMED, on_sigterm=on_sigterm, shut_down_ms=1000 * shut_down_s)
    assert roll(replace(one, strategy="Recreate"), assumed, Random(1)).ends == {
        0: (1000 * ends_s, is_killed)
    }


def test_no_deploy_has_more_or_fewer_pods_than_allowed() -> None:
    random = Random(7)
    for _ in range(300):
        n = random.randint(1, 9)
        surge, unavailable = random.randint(0, n), random.randint(0, n)
        unavailable = unavailable or int(surge == 0)
        probes = (ReadinessProbe(0, random.randint(1, 9) * 1000, 1),) * random.randint(0, 1)
        one = workload(
            replicas=n, max_surge=surge, max_unavailable=unavailable, probes=probes, grace_ms=0
        )
        rolled = roll(one, replace(ASSUMED, on_sigterm="dies"), random)
        assert len(rolled.ends) == len(rolled.pods) == n
        for now in {end.at_ms for end in rolled.ends.values()}:
            old = sum(end.at_ms > now for end in rolled.ends.values())
            available = old + sum(pod.available_ms <= now for pod in rolled.pods)
            assert available >= n - unavailable


# Forecasts ----------------------------------------------------------------------------------------


def figures(group: kr.GroupSpec, one: Workload, **given: Any) -> dict[str, dict[str, Any]]:
    options = {"assumed": ASSUMED, "seeds": range(1, 4), **given}
    found = rollout(group, one, **options)
    return {each.name: dict(each.figures) for each in found.variants}


def test_static_members_of_a_stateful_set_restart_for_free() -> None:
    (found,) = figures(formed(3, 9, static=True), workload("StatefulSet"), most=1).values()
    assert found["rebalances"].most == found["moves"].most == found["twice_ms"].most == 0
    # Each pod is away for 5 s (a tenth more or less), and has three partitions.
    assert 3 * 3 * 4_500 < found["unread_ms"].median < 3 * 3 * 5_600


def test_a_restart_longer_than_the_session_moves_partitions_and_a_longer_session_helps() -> None:
    config = ConsumerConfig(session_timeout_ms=6_000, heartbeat_interval_ms=1_000)
    given: dict[str, Any] = {"assumed": replace(ASSUMED, start_up_ms=10_000), "config": config}
    one = workload("StatefulSet", probes=(ReadinessProbe(0, 1_000, 1),))
    found = figures(formed(3, 9, static=True), one, **given)
    assert found["as it is"]["rebalances"].least >= 3
    assert found["longer session"]["rebalances"].most == 0
    assert "cooperative" in found
    assert "consumer protocol" in found


def test_members_that_die_are_missed_after_their_session_and_records_are_read_twice() -> None:
    group, one = formed(2, 4), workload(replicas=2, max_surge=2, max_unavailable=0)
    found = figures(group, one, assumed=replace(ASSUMED, on_sigterm="dies"), rate={"t": 400})
    dead = found["as it is"]
    assert dead["longest_ms"].least > 40_000
    assert 0 < dead["twice_ms"].most <= 4 * 5_000
    assert dead["records_twice"].most == pytest.approx(dead["twice_ms"].most / 10, abs=1)
    assert found["closes"]["longest_ms"].most < 10_000
    assert found["closes"]["twice_ms"].most == 0


def test_a_deployment_gives_static_members_new_ids_and_dynamic_ones_are_better() -> None:
    one = workload(max_surge=3, max_unavailable=0)
    found = figures(formed(3, 9, "cooperative-sticky", static=True), one)
    assert found["as it is"]["longest_ms"].least > 40_000
    assert found["dynamic"]["longest_ms"].most < 10_000
    assert found["static"]["rebalances"].most == 0


def test_the_broker_refuses_the_id_of_a_killed_member_until_its_session_has_ended() -> None:
    broker = CoordinatorConfig(group_consumer_session_timeout_ms=20_000)
    given = {"assumed": replace(ASSUMED, on_sigterm="dies"), "broker": broker, "most": 1}
    group, one = formed(2, 4, "consumer/uniform", static=True), workload("StatefulSet", 2)
    (found,) = figures(group, one, **given).values()
    assert found["rebalances"].least >= 2
    assert found["longest_ms"].least > 14_000


def test_a_forecast_is_the_same_each_time_and_of_all_its_variants_six_at_most() -> None:
    group, one = formed(2, 4, static=True), workload(replicas=2)
    given: dict[str, Any] = {"assumed": replace(ASSUMED, on_sigterm="ignores"), "seeds": range(2)}
    found = rollout(group, one, **given)
    assert found == rollout(group, one, **given)
    assert len(found.variants) == 6
    assert all(each.lines for each in found.variants[1:])
    assert json.loads(json.dumps(found.to_dict()))["variants"][0]["lines"] == []


def test_wrong_arguments_of_a_forecast() -> None:
    with pytest.raises(kr.GroupError, match="replicas: 3 members cannot be shared evenly"):
        rollout(formed(3, 9), workload(replicas=2))
    with pytest.raises(kr.GroupError, match="rate: the group reads no topic 'x'"):
        rollout(formed(3, 9), workload(), rate={"x": 1})
    with pytest.raises(kr.GroupError, match="on_sigterm: 'leaves' is not of closes, dies, ignores"):
        Assumed(on_sigterm="leaves")


def test_threads_of_a_pod_stop_together() -> None:
    group = formed(4, 8, "cooperative-sticky")
    base = kr.scenario(group)
    now = Variant("", (), base, workload(replicas=2, strategy="Recreate"), ASSUMED)
    scenario = forecast.deployed(now, Random(1), 60_000)
    stops = [one for one in scenario.happenings if one.kind.value == "stop"]
    assert len(stops) == 4
    assert stops[0].at_ms == stops[1].at_ms
    assert {stops[0].member, stops[1].member} in ({"app-0", "app-1"}, {"app-2", "app-3"})


# The gate -----------------------------------------------------------------------------------------


def test_a_group_as_planned_has_no_differences() -> None:
    for assignor in ("range", "sticky", "cooperative-sticky", "consumer/uniform"):
        assert differences(formed(3, 9, assignor), workload()) == []
    static = formed(3, 9, static=True)
    assert differences(static, workload("StatefulSet"), before=static) == []
    assert differences(formed(4, 8), workload(replicas=2), per_pod=2) == []


def test_the_gate_names_what_differs() -> None:
    assert differences(formed(2, 9), workload()) == ["2 members instead of 3"]
    away = [replace(one, generation_id=-2) for one in formed(3, 9).members]
    found = differences(replace(formed(3, 9), members=tuple(away)), workload())
    assert found == ["3 members away, as static members are that restart"]
    static = workload("StatefulSet", first_ordinal=1)
    assert differences(formed(3, 9, static=True), static) == ['no member "app-3"']
    unread = replace(formed(3, 9), topics=(kr.Topic("t", 10),))
    assert differences(unread, workload()) == ["1 partition without a member, such as t-9"]
    group = formed(3, 9)
    first, *others = group.members
    moved = (replace(first, owned_partitions=others[0].owned_partitions),
             replace(others[0], owned_partitions=first.owned_partitions), *others[1:])  # fmt: skip
    swapped = replace(group, members=moved)
    assert differences(swapped, workload()) == ["the next rebalance would move 6 partitions"]
    before = formed(3, 9, static=True)
    ids = dict(zip(("app-0", "app-1", "app-2"), ("app-1", "app-0", "app-2"), strict=True))
    turned = tuple(replace(one, group_instance_id=ids[one.member_id]) for one in before.members)
    found = differences(replace(before, members=turned), workload("StatefulSet"), before=before)
    assert '"app-0" no longer reads 3 partitions, such as t-0' in found


# The command --------------------------------------------------------------------------------------


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "app.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_command_answers_in_words_and_in_json(tmp_path: Path) -> None:
    lines = tmp_path / "groups.jsonl"
    lines.write_text(SAMPLE["exchange-rates"].to_json() + "\n")
    ran = command("rollout", written(tmp_path, manifest(replicas=2)), lines)
    assert ran.returncode == 0, ran.stderr
    said = " ".join(ran.stdout.partition("\n\n")[0].split())
    least = r"use \"[a-z ]+\"( \(.+\))? in a deploy of Deployment app \(2 pods\): "
    now = r"[0-9.]+ and \d+ rebalances? as it is"
    course = r"[0-9.]+ partition-seconds without a reader and (no rebalance|\d+ rebalances?)"
    starts = re.escape("if a partition starts in no time (try --setting start_cost=200ms too), ")
    assert re.match(f"exchange-rates: {starts}{least}{course}, instead of {now}\\.", said), said
    for text in ("as it is", "static:", "±10%", "group.instance.id=$(POD_NAME)"):
        assert text in ran.stdout
    words = ("--setting", "on_sigterm=dies", "--setting", "session_timeout=10s", "--json")
    ran = command("rollout", tmp_path / "app.yaml", lines, *words)
    answer = json.loads(ran.stdout)
    assert answer["summary"].startswith("a deploy of Deployment app (2 pods) causes")
    assert " partition-seconds of records read twice), one " in answer["summary"]
    assert answer["variants"][0]["figures"]["longest_ms"]["least"] > 5_000
    assert "dies at once" in answer["assumed"]
    assert "sessions of 10 s" in answer["assumed"]


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("--rate", "audit-trail=nan"), 2, "rate"),
        (("--setting", "start_up"), 2, "'start_up' is not SETTING=VALUE"),
        (("--setting", "start_up=8"), 2, "--setting.start_up: '8' has no unit"),
        (("--setting", "on_sigterm=x"), 2, "--setting.on_sigterm: 'x' is not of closes"),
        (("--replicas", "4"), 2, "replicas: 3 members cannot be shared evenly"),
        (("--name", "x"), 2, 'app.yaml: name: no workload "x"; there are: "app"'),
        (("--gate",), 2, "--gate needs --bootstrap-server and --group"),
        (("--group", "x"), 3, "x: group_id: no such group"),
    ],
)
def test_wrong_usage(tmp_path: Path, words: tuple[str, ...], code: int, problem: str) -> None:
    lines = tmp_path / "groups.jsonl"
    lines.write_text(SAMPLE["audit"].to_json() + "\n")
    ran = command("rollout", written(tmp_path, manifest()), lines, *words)
    assert (ran.returncode, ran.stdout) == (code, "")
    assert problem in ran.stderr


def test_the_gate_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "before-a-deploy.md").read_text(encoding="utf-8")
    name, *words = yaml.safe_load(page.rpartition("```yaml\n")[2].partition("```")[0])["command"]
    answer = page.partition("```console\n")[2].partition("```")[0]
    assert answer in (ROOT / "docs" / "deploys.md").read_text(encoding="utf-8")  # which is run
    example = page.partition("example: deployment.yaml -->\n```yaml\n")[2].partition("```")[0]
    (tmp_path / "deployment.yaml").write_text(example, encoding="utf-8")
    asked: list[object] = []

    def lines(server: str, names: list[str], **_: object) -> list[dict[str, object]]:
        asked.append((server, *names))
        return [json.loads(SAMPLE["chat-moderation"].to_json())]

    _describe_as(monkeypatch, lines)
    monkeypatch.chdir(tmp_path)
    ran = command(*words)
    assert name == "kafka-rebalance"
    assert (ran.returncode, {*asked}) == (0, {("broker:9092", "chat-moderation")}), ran.stdout
    assert "stable, as planned" in ran.stdout


def _describe_as(monkeypatch: pytest.MonkeyPatch, lines: Callable[..., object]) -> None:
    """Makes descriptions of groups without a cluster."""
    monkeypatch.setattr("kafka_rebalance.live.snapshot_lines", lines)


def test_the_gate_waits_for_a_state_as_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = [json.loads(formed(n, 9).to_json()) for n in (2, 3)]
    last = states[-1]
    moving = {**last, "members": [{**one, "assigned_partitions": []} for one in last["members"]]}
    seen = [states[0], states[0], moving]
    _describe_as(monkeypatch, lambda *_, **__: [seen.pop(0) if seen else last])
    words = ("--gate", "--bootstrap-server", "h:1", "--group", "g")
    ran = command("rollout", written(tmp_path, manifest()), *words)
    assert ran.returncode == 0, ran.stdout
    assert ran.stdout == "g: stable, as planned: every partition has its reader.\n"
    assert ran.stderr.count("g: 2 members instead of 3; waiting") == 1
    later = {"group_id": "g", "error": "state: PreparingRebalance, it is rebalancing"}
    seen = [last]
    _describe_as(monkeypatch, lambda *_, **__: [seen.pop() if seen else later])
    ran = command("rollout", tmp_path / "app.yaml", *words, "--for", "2")
    assert (ran.returncode, "PreparingRebalance" in ran.stdout) == (4, True)

    def broker_restarts(*_: object, **__: object) -> list[dict[str, object]]:
        if len(restarts) < 2:
            restarts.append(1)
            raise NotReachedError("no broker answers")
        return [last]

    restarts: list[int] = []
    _describe_as(monkeypatch, broker_restarts)
    ran = command("rollout", tmp_path / "app.yaml", *words)
    assert (ran.returncode, ran.stderr.count("no broker answers; waiting")) == (0, 1)
    _describe_as(monkeypatch, lambda *_, **__: [states[0]])
    ran = command("rollout", tmp_path / "app.yaml", *words, "--for", "1")
    assert ran.returncode == 4
    assert ran.stdout == "g: not as planned after 1 s: 2 members instead of 3.\n"
    _describe_as(monkeypatch, lambda *_, **__: [{"group_id": "g", "error": "state: Dead"}])
    ran = command("rollout", tmp_path / "app.yaml", *words, "--json", "--for", "1")
    assert ran.returncode == 4
    assert json.loads(ran.stdout)["differences"] == ["state: Dead"]
