# SPDX-License-Identifier: Apache-2.0
"""Runs the exporter and Prometheus with the rules of deploy/, and notes which alerts fire."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import yaml

from tests.history_live.exported import exporter
from tests.support.prometheus import DEPLOY, Prometheus, ask, await_value

if TYPE_CHECKING:
    from collections.abc import Mapping

ALERTS = {
    "stopped": "KafkaGroupStopped",
    "unread": "KafkaGroupUnreadPartitions",
    "storm": "KafkaGroupStorm",
    "flapping": "KafkaGroupFlapping",
    "idle": "KafkaGroupIdleMembers",
    "uneven": "KafkaGroupUneven",
}
"""Each planted trouble -> the alert of its group."""
_LOOK_S = 10.0
_DELAY_S = 120.0
"""A scrape and an evaluation of the rules, each at most every minute."""

Alert = tuple[str, str]
"""Name and group."""


def watch_alerts(server: str, planted: Mapping[str, str], minutes: float) -> list[str]:
    """Watches for some minutes, prints each alert, and returns what is wrong.

    An alert must fire, or be pending if its rule waits longer than these minutes.
    """
    rules = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"][0]["rules"]
    waits = {rule["alert"]: int(re.sub(r"m$", "", rule.get("for", "0m"))) for rule in rules}
    wanted = {(ALERTS[kind], group_id) for kind, group_id in planted.items()}
    fired: dict[Alert, str] = {}
    pending: set[Alert] = set()
    scraped = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"][0]
    interval = {"scrape_interval": scraped["scrape_interval"]}
    with (
        TemporaryDirectory() as directory,
        exporter(server, every_s=30) as pages,
        Prometheus(Path(directory), int(pages.rpartition(":")[2]), **interval) as api,
    ):
        await_value(api, 'up{job="kafka-rebalance"} == 1')
        began = time.monotonic()
        while (past_s := time.monotonic() - began) < 60 * minutes:
            for sample in ask(api, "ALERTS"):
                labels = sample["metric"]
                alert = labels["alertname"], labels.get("group", "")
                pending.add(alert)
                if labels["alertstate"] == "firing" and alert not in fired:
                    fired[alert] = str(timedelta(seconds=int(past_s)))
                    print(f"{fired[alert]}  {' '.join(alert)}", flush=True)
            time.sleep(_LOOK_S)
        print(*_figures(api, minutes), sep="\n")
    waiting = {one for one in wanted if 60 * (minutes - waits[one[0]]) < _DELAY_S}
    print(f"pending at some time: {', '.join(map(' '.join, sorted(pending - fired.keys())))}")
    missing = (wanted - waiting - fired.keys()) | (waiting - pending)
    return [
        *(f"{' '.join(one)} has not fired" for one in sorted(missing)),
        *(f"{' '.join(one)} has fired" for one in sorted(fired.keys() - wanted)),
    ]


def _figures(api: str, minutes: float) -> list[str]:
    """Returns the longest scrape, the exporter's memory and the rebalances that it counted."""
    over = f"[{minutes:.0f}m]"
    queries = {
        "longest scrape, s": f"max_over_time(scrape_duration_seconds{over})",
        "resident MB": "process_resident_memory_bytes / 1e6",
        "groups": "kafka_rebalance_groups",
        "rebalances": "sum(kafka_rebalance_rebalances_total)",
        "from records": 'kafka_rebalance_source{source="records"}',
    }
    found = {name: ask(api, query) for name, query in queries.items()}
    return [f"{name}: {float(one[0]['value'][1]):.3g}" for name, one in found.items() if one]
