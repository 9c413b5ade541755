# SPDX-License-Identifier: Apache-2.0
"""The files of deploy/: rules and queries use metrics that exist, and Prometheus answers them.

promtool and prometheus run if they are installed (Debian: apt-get install prometheus).
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from kafka_rebalance.cli.parser import parser

pytest.importorskip("prometheus_client", reason="no prometheus-client: see the extra `exporter`")

from kafka_rebalance.follow import exporter as exporter_module
from kafka_rebalance.follow.metrics import FAMILIES, PREFIX
from tests.support.prometheus import DEPLOY, IS_INSTALLED, Prometheus, ask, await_value
from tests.support.waiting import FAR_S
from tests.test_exporter import VECTORS, Pages, line, of_log, records, seen

if TYPE_CHECKING:
    from pathlib import Path

RULES = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"][0]["rules"]
DASHBOARD = json.loads((DEPLOY / "dashboard.json").read_text())
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]

needs_promtool = pytest.mark.skipif(
    not IS_INSTALLED, reason="no promtool: apt-get install prometheus"
)


@pytest.mark.parametrize("query", [*QUERIES, *(rule["expr"] for rule in RULES)])
def test_each_query_names_metrics_that_exist(query: str) -> None:
    suffixes = {"counter": ("_total",), "summary": ("_sum", "_count"), "info": ("_info",)}
    known = set[str]()
    for name, (kind, _) in FAMILIES.items():
        known |= {f"{PREFIX}{name}{suffix}" for suffix in suffixes.get(kind, ("",))}
    named = set(re.findall(rf"{PREFIX}\w+", query))
    assert named
    assert named <= known


def test_each_alert_names_a_page_that_exists() -> None:
    for rule in RULES:
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        text = (DEPLOY.parent / page).read_text(encoding="utf-8")
        assert "{{" in anchor or not anchor or f"\n## {anchor}\n" in text


def test_the_commands_of_the_manifest_and_the_unit_are_understood() -> None:
    documents = [*yaml.safe_load_all((DEPLOY / "kubernetes.yml").read_text())]
    [deployment] = [one for one in documents if one["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    args = parser(container["args"]).parse_args(container["args"])
    assert (args.host, args.port) == ("0.0.0.0", container["ports"][0]["containerPort"])
    unit = (DEPLOY / "kafka-rebalance-exporter.service").read_text()
    _, *words = shlex.split(unit.partition("ExecStart=")[2].partition("\n")[0])
    assert parser(words).parse_args(words).host == "127.0.0.1"


@needs_promtool
def test_the_alerts_fire_when_they_should() -> None:
    for words in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
        ran = subprocess.run(
            ["promtool", *words], cwd=DEPLOY, capture_output=True, text=True, timeout=FAR_S
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr


@needs_promtool
def test_prometheus_scrapes_the_page_and_answers_each_query(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Groups of a recorded log, and an uneven group; rates need two scrapes."""
    read = records(VECTORS / "kafka-4.4.0" / "records.jsonl.gz")
    now_ms = max(one.timestamp_ms for one in read)
    monkeypatch.setattr(exporter_module, "_now_ms", lambda: now_ms)
    exporter = of_log(monkeypatch, read[: len(read) // 2])
    seen(monkeypatch, exporter, line("mixed", a=[0, 1, 2, 3, 4], b=[5], c=[]))
    with Pages(exporter) as pages, Prometheus(tmp_path, pages.server.server_port) as api:
        await_value(api, 'up{job="kafka-rebalance"} == 1')
        of_pages = pages.get("/metrics")[1]
        await_value(api, f"{PREFIX}rebalances_total")
        exporter.followed.take(read[len(read) // 2 :])
        await_value(api, f"increase({PREFIX}rebalances_total[1m]) > 0")
        lacking = [query for query in QUERIES if not ask(api, _filled(query))]
        for rule in RULES:
            ask(api, rule["expr"])
        names = set(re.findall(rf"^({PREFIX}\w+)", of_pages, re.MULTILINE))
        missing = [name for name in names if not ask(api, name)]
    assert missing == []
    assert lacking == []


def _filled(query: str) -> str:
    """Returns the query for all groups; all rebalances of this log are as predicted."""
    above_0 = "" if "unpredicted" in query else " > 0"
    query = query.replace(" > 0", above_0)
    return query.replace("$group", ".*").replace("$__rate_interval", "1m")
