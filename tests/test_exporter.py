# SPDX-License-Identifier: Apache-2.0
"""The exporter's metrics, from records and from descriptions; its pages over HTTP."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections import Counter
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.errors import GroupError
from kafka_rebalance.history import read_records, rebalance_history
from kafka_rebalance.history.all_groups import FollowedHistory
from tests.support.hostile_names import PIECES
from tests.test_watch_by_broker import described

prometheus = pytest.importorskip(
    "prometheus_client", reason="no prometheus-client: pip install -e '.[exporter]'"
)
from prometheus_client.openmetrics import parser  # noqa: E402

from kafka_rebalance.follow import cluster  # noqa: E402
from kafka_rebalance.follow import exporter as exporter_module  # noqa: E402
from kafka_rebalance.follow import server as server_module  # noqa: E402
from kafka_rebalance.follow.exporter import Exporter  # noqa: E402
from kafka_rebalance.follow.metrics import UnreadTime  # noqa: E402
from kafka_rebalance.follow.server import http_server  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kafka_rebalance.wire.group_records import OffsetsRecord

parse: Any = parser.text_string_to_metric_families
VECTORS = Path(__file__).parent / "vectors" / "history"
LOGS = sorted(VECTORS.rglob("*records.jsonl*"))


def records(path: Path) -> list[OffsetsRecord]:
    return sorted(read_records(str(path)), key=attrgetter("partition", "offset"))


def page_of(exporter: Exporter) -> str:
    return b"".join(exporter.page()).decode()


def samples(exporter: Exporter) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Yields name without prefix, labels and value; the page must be OpenMetrics."""
    for family in parse(page_of(exporter)):
        for one in family.samples:
            yield one.name.removeprefix("kafka_rebalance_"), one.labels, one.value


def values(exporter: Exporter, name: str, **labels: str) -> list[float]:
    return [v for n, of, v in samples(exporter) if n == name and labels.items() <= of.items()]


def value(exporter: Exporter, name: str, **labels: str) -> float:
    [found] = values(exporter, name, **labels)
    return found


def seen(monkeypatch: pytest.MonkeyPatch, exporter: Exporter, *lines: dict[str, Any]) -> None:
    """Lets the exporter describe groups once."""
    monkeypatch.setattr(cluster, "snapshot_lines", lambda *_, **__: iter(lines))
    exporter.followed.look()


# Records ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", LOGS, ids=lambda path: str(path.relative_to(VECTORS)))
def test_a_log_that_is_followed_has_the_rows_of_its_history(path: Path) -> None:
    """The rows are equal, because no record of these logs was lost by compaction.

    A followed log has no rows of groups whose brokers assign.
    """
    read = records(path)
    history = FollowedHistory()
    rows = [found.row for one in read for found in history.add(one)]
    rows.sort(key=lambda row: (row.written_ms, row.partition, row.offset))
    assert rows == [row for row in rebalance_history(read) if row.group_type == "classic"]


def of_log(monkeypatch: pytest.MonkeyPatch, read: list[OffsetsRecord]) -> Exporter:
    """Lets an exporter read records in pieces, as if they were written now."""
    topics = {t: {"name": t, "partitions": 12} for one in _generations(read) for t in one.topics}
    monkeypatch.setattr(cluster, "topic_lines", lambda *_, **__: topics)
    exporter = Exporter("")
    for start in range(0, len(read), 100):
        exporter.followed.take(read[start : start + 100])
    return exporter


def _generations(read: list[OffsetsRecord]) -> Iterator[Any]:
    history = FollowedHistory()
    for one in read:
        yield from (found.after for found in history.add(one) if found.after is not None)


def test_each_recorded_rebalance_is_counted_once_by_its_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = records(VECTORS / "kafka-4.4.0" / "records.jsonl.gz")
    rows = [row for row in rebalance_history(read) if row.is_rebalance]
    exporter = of_log(monkeypatch, read)
    counted = {
        (labels["group"], labels["cause"]): number
        for name, labels, number in samples(exporter)
        if name == "rebalances_total"
    }
    assert counted == Counter((row.group_id, row.cause) for row in rows)
    moved = sum(row.moved + row.gained for row in rows)
    assert sum(values(exporter, "moved_partitions_total")) == moved
    expired = sum(one.kind == "timed out" for row in rows for one in row.causes)
    assert sum(values(exporter, "member_changes_total", change="timed out")) == expired > 0
    assert sum(values(exporter, "rebalance_seconds_count")) <= len(rows)
    assert value(exporter, "source", source="records") == 0  # the log's thread does not run
    # Topics have grown since then. Two leaders did not know one of them yet.
    assert sum(values(exporter, "unpredicted_rebalances_total")) == 2


def test_a_group_that_begins_while_all_are_described_keeps_its_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Descriptions of a large or busy cluster take seconds, and list what was there before."""
    read = records(VECTORS / "kafka-4.4.0" / "records.jsonl.gz")
    exporter = of_log(monkeypatch, [])

    def describes(*_: object, **__: object) -> Iterator[dict[str, Any]]:
        exporter.followed.take(read)
        yield line("g", a=[0])

    monkeypatch.setattr(exporter_module, "group_lags", lambda *_, **__: {})
    monkeypatch.setattr(cluster, "snapshot_lines", describes)
    exporter.followed.look()
    rebalances = sum(row.is_rebalance for row in rebalance_history(read))
    assert sum(values(exporter, "rebalances_total")) == rebalances
    down = {"group_id": None, "error": "brokers: broker 2 does not list its groups"}
    seen(monkeypatch, exporter, line("g", a=[0]), down)
    assert sum(values(exporter, "rebalances_total")) == rebalances
    seen(monkeypatch, exporter, line("g", a=[0]))
    assert values(exporter, "rebalances_total") == []


def test_no_label_names_a_member(monkeypatch: pytest.MonkeyPatch) -> None:
    read = records(VECTORS / "kafka-4.4.0" / "records.jsonl.gz")
    page = page_of(of_log(monkeypatch, read))
    ids = {member.member_id for one in _generations(read) for member in one.members}
    assert len(ids) > 50
    assert [one for one in ids if one in page] == []
    labels = {name for _, of, _ in samples(of_log(monkeypatch, read)) for name in of}
    known = {"group", "cause", "change", "kind", "source"}
    assert labels <= known | {"bound", "figure", "assignor", "severity"}


def test_records_from_before_are_not_counted_but_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group that has been empty for a week has no reader now, but its week is not counted."""
    read = records(VECTORS / "kafka-4.4.0" / "records.jsonl.gz")
    monkeypatch.setattr(exporter_module, "_now_ms", lambda: read[-1].timestamp_ms + 7 * 86_400_000)
    exporter = Exporter("")
    last = {one.partition: one.offset for one in read}
    exporter.followed.log.old_before.update({one: end + 1 for one, end in last.items()})
    exporter.followed.take(read)
    assert values(exporter, "rebalances_total") == []
    assert len(values(exporter, "generation")) > 5
    assert max(values(exporter, "unread_partitions")) > 5
    assert {*values(exporter, "unread_partition_seconds_total")} == {0}


def test_a_storm_is_a_pattern_until_it_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    read = records(VECTORS / "kafka-4.4.0" / "records.jsonl.gz")
    now_ms = [max(one.timestamp_ms for one in read)]
    monkeypatch.setattr(exporter_module, "_now_ms", lambda: now_ms[0])
    exporter = of_log(monkeypatch, read)
    assert value(exporter, "findings", kind="storm", severity="warning", group="mixed") == 1
    assert value(exporter, "pattern", kind="rolling", group="mixed") == 1
    now_ms[0] += 600_000
    assert values(exporter, "pattern") + values(exporter, "findings") == []


def test_seconds_without_a_reader() -> None:
    unread = UnreadTime()
    unread.becomes(3, 1_000)
    unread.becomes(1, 3_000)
    unread.becomes(1, 2_000)  # another broker's clock
    unread.becomes(0, 5_000)
    unread.becomes(0, 9_000)
    assert unread.seconds == 3 * 2 + 1 * 2


# Descriptions -------------------------------------------------------------------------------------


def line(group_id: str, **owned: list[int]) -> dict[str, Any]:
    """Returns the description of a classic group; keys are members, values their partitions."""
    members = [
        {"member_id": one, "topics": ["t"], "owned_partitions": [{"topic": "t", "partitions": p}]}
        for one, p in owned.items()
    ]
    topics = [{"name": "t", "partitions": 6}]
    return {"group_id": group_id, "assignor": "range", "topics": topics, "members": members}


def test_gauges_and_differences_of_descriptions(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = Exporter("")
    modern = described(5, ("m", 5, [0, 1]))
    seen(
        monkeypatch, exporter, line("g", a=[0, 1, 2, 3, 4], b=[5], c=[]), modern | {"group_id": "m"}
    )
    assert values(exporter, "rebalances_total") == []
    of_g = {"group": "g"}
    assert value(exporter, "members", **of_g) == 3
    assert value(exporter, "idle_members", **of_g) == 1
    assert value(exporter, "member_partitions", bound="most", **of_g) == 5
    assert value(exporter, "possible_member_partitions", bound="most", **of_g) == 2
    assert value(exporter, "findings", kind="uneven", **of_g) == 1
    assert value(exporter, "one_more_member", figure="fullest", **of_g) == 2
    later = described(8, ("m", 8, [0]), ("n", 8, [1])) | {"group_id": "m"}
    seen(monkeypatch, exporter, line("g", a=[0, 1, 2], b=[3, 4, 5]), later)
    assert value(exporter, "rebalances_total", cause="gone", **of_g) == 1
    assert value(exporter, "last_rebalance_as_predicted", **of_g) == 1
    assert value(exporter, "rebalances_total", cause="joined", group="m") == 1
    assert value(exporter, "unseen_generations_total", group="m") == 2
    assert value(exporter, "generation", group="m") == 8
    moving = {"group_id": "g", "error": "state: PreparingRebalance, it is rebalancing: ask again"}
    waiting = {kr.TopicPartition("t", 0): 5, kr.TopicPartition("t", 1): 7}
    monkeypatch.setattr(exporter_module, "group_lags", lambda *_, **__: {"m": waiting})
    seen(monkeypatch, exporter, moving, {"group_id": "m", "error": "state: Empty, no members"})
    assert value(exporter, "rebalancing", **of_g) == 1
    assert value(exporter, "members", group="m") == 0
    assert value(exporter, "findings", group="m", kind="stopped", severity="error") == 1
    assert value(exporter, "stopped_lag", group="m") == 12
    seen(monkeypatch, exporter, later)  # g is gone, and m has begun again
    assert values(exporter, "members", **of_g) == []
    assert value(exporter, "rebalances_total", cause="started", group="m") == 1


def test_groups_of_a_broker_that_is_down_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    problems: list[tuple[str, str | None]] = []
    exporter = Exporter(
        "", on_problem=lambda what, why: problems.append((what, str(why) if why else None))
    )
    seen(monkeypatch, exporter, line("g", a=[0, 1, 2, 3, 4, 5]), line("h", a=[0, 1, 2, 3, 4, 5]))
    down = {"group_id": None, "error": "brokers: broker 2 does not list its groups"}
    for _ in range(2):
        seen(monkeypatch, exporter, down, line("g", a=[0, 1, 2, 3, 4, 5]))
    assert len(values(exporter, "members")) == 2
    seen(monkeypatch, exporter, line("g", a=[0, 1, 2, 3, 4, 5]))
    assert len(values(exporter, "members")) == 1
    assert problems == [("groups", down["error"]), ("groups", None)]


def test_an_even_group_between_two_rounds_is_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exporter, whole = Exporter(""), {"a": [0, 1, 2, 3, 4, 5]}
    seen(monkeypatch, exporter, line("g", **whole))
    seen(monkeypatch, exporter, line("g", a=[0, 1, 2], b=[]))
    assert values(exporter, "rebalances_total") == []
    seen(monkeypatch, exporter, line("g", a=[0, 1, 2], b=[3, 4, 5]))
    assert value(exporter, "rebalances_total", cause="joined") == 1


def test_an_error_for_good_ends_the_exporter(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exporter", "--bootstrap-server", "127.0.0.1:x", "--port", "0"]) == 2
    said = capsys.readouterr().err
    assert said.endswith('bootstrap_server: "127.0.0.1:x": "x" is not a port from 1 to 65535\n')


def test_at_most_so_many_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = Exporter("", most_groups=2, is_wanted=lambda name: name != "b")
    seen(monkeypatch, exporter, *(line(name, a=[0, 1, 2, 3, 4, 5]) for name in "abcde"))
    groups = [of["group"] for name, of, _ in samples(exporter) if name == "members"]
    assert groups == ["a", "c"]
    assert (value(exporter, "groups"), value(exporter, "groups_left_out")) == (2, 2)


def test_hostile_names_stay_inside_their_label(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [*PIECES, 'a"} 1\n# EOF', "back\\slash"]
    exporter = Exporter("")
    seen(monkeypatch, exporter, *(line(name, a=[0, 1, 2, 3, 4, 5]) for name in names))
    page = page_of(exporter)
    assert len(values(exporter, "members")) == len(names)
    assert page.count("\n# EOF\n") == 1
    assert all(one.isprintable() or one == "\n" for one in page)


# HTTP ---------------------------------------------------------------------------------------------


class Pages:
    """An exporter's pages on a free port of the loopback address."""

    def __init__(self, exporter: Exporter) -> None:
        self.server = http_server(exporter, "127.0.0.1", 0)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self) -> Pages:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def get(self, path: str, method: str = "GET") -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.server.server_port}{path}"
        try:
            with urllib.request.urlopen(urllib.request.Request(url, method=method)) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()


def test_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = Exporter("broker:9092", configs={"sasl_plain_password": "secret"})
    with Pages(exporter) as pages:
        assert pages.get("/healthz") == (503, "the groups have not been read yet\n")
        seen(monkeypatch, exporter, line("g", a=[0, 1, 2, 3, 4, 5]))
        assert pages.get("/healthz") == (200, "ok\n")
        status, page = pages.get("/metrics")
        assert status == 200
        assert page.endswith("# EOF\n")
        assert "secret" not in page
        assert pages.get("/metrics", method="POST")[0] == 405
        assert pages.get("/etc/passwd")[0] == 404
        assert pages.get("/scale/nobody?capacity=1")[0] == 404
        for query, path in (("", "capacity"), ("?capacity=x", "capacity"), ("?foo=1", "query")):
            status, answer = pages.get(f"/scale/g{query}")
            assert (status, json.loads(answer)["error"].split(":")[0]) == (400, path)


def test_an_autoscaler_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """12 partitions with 10 records a second each: 2 members that read 30 are too few."""
    topics = (kr.Topic("t", 12),)
    members = tuple(kr.Member(one, ("t",)) for one in "ab")
    group = kr.plan(kr.GroupSpec("g", topics, members, "cooperative-sticky", 1)).final
    followed = cluster.FollowedCluster("", Exporter(""))
    followed._lines["g"] = group.to_json()
    clock = {"s": 0.0}
    monkeypatch.setattr("time.monotonic", lambda: clock["s"])
    tps = [kr.TopicPartition("t", p) for p in range(12)]
    monkeypatch.setattr(
        server_module, "group_lags", lambda *_, **__: {"g": dict.fromkeys(tps, 100)}
    )
    monkeypatch.setattr(
        server_module, "partition_ends", lambda *_, **__: dict.fromkeys(tps, int(10 * clock["s"]))
    )
    scaling = server_module.Autoscaling(followed)
    asked = [("capacity", "30")]
    first = scaling.answer("g", asked)
    assert (first["replicas"], first["replicas_now"]) == (2, 2)
    clock["s"] = 30.0
    assert scaling.answer("g", asked)["replicas"] == 4
    assert scaling.answer("g", [*asked, ("max", "3")])["replicas"] == 3
    assert scaling.answer("g", [*asked, ("per_replica", "2")])["replicas"] == 2
    with pytest.raises(GroupError, match="min: 5 is more than max, 3"):
        scaling.answer("g", [*asked, ("min", "5"), ("max", "3")])


def test_the_exporter_of_a_served_broker() -> None:
    """Rebalances of a real client, by descriptions: this broker has no log to read."""
    pytest.importorskip("kio", reason="no kio: pip install -e '.[serve]'")
    from kafka_rebalance.testing import RunningBroker
    from tests.support.served_consumers import TOPIC, KafkaPython

    with RunningBroker({TOPIC: 6}) as broker:
        first = KafkaPython(broker.address, "a")
        broker.wait_until_stable("billing", members=1, partitions=6)
        exporter = Exporter(broker.address)
        exporter.followed.look()
        second = KafkaPython(broker.address, "b")
        broker.wait_until_stable("billing", members=2, partitions=6)
        exporter.followed.look()
        for one in (first, second):
            one.close()
    assert value(exporter, "rebalances_total", group="billing", cause="joined") == 1
    assert value(exporter, "members", group="billing") == 2
    assert value(exporter, "source", source="descriptions") == 1
