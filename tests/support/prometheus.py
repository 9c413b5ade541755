# SPDX-License-Identifier: Apache-2.0
"""A Prometheus server with the configuration and the rules of deploy/ (Debian: prometheus)."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from tests.support.ports import free_ports
from tests.support.processes import wait_or_kill
from tests.support.waiting import FAR_S, until

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
IS_INSTALLED = all(shutil.which(name) for name in ("promtool", "prometheus"))


class Prometheus:
    """A server that scrapes a port, by default each second; `with` returns its address."""

    def __init__(self, directory: Path, target: int, **scraped: str) -> None:
        config = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
        config["rule_files"] = [str(DEPLOY / "alerts.yml")]
        [scrape] = config["scrape_configs"]
        scrape |= scraped or {"scrape_interval": "1s", "scrape_timeout": "1s"}
        scrape["static_configs"][0]["targets"] = [f"127.0.0.1:{target}"]
        path = directory / "prometheus.yml"
        path.write_text(yaml.safe_dump(config))
        self.address = f"127.0.0.1:{free_ports(1)[0]}"
        options = {
            "config.file": path,
            "storage.tsdb.path": directory / "data",
            "web.listen-address": self.address,
        }
        self.words = ["prometheus", *(f"--{name}={value}" for name, value in options.items())]
        self.log = directory / "log"

    def __enter__(self) -> str:
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(self.words, stdout=log, stderr=log)
        return self.address

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        wait_or_kill(self.process, 20)


def ask(api: str, query: str) -> list[Any]:
    """Returns the samples; a query that Prometheus refuses raises an HTTPError."""
    url = f"http://{api}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    with urllib.request.urlopen(url, timeout=FAR_S) as answer:
        document = json.load(answer)
    assert document["status"] == "success"
    found: list[Any] = document["data"]["result"]
    return found


def await_value(api: str, query: str) -> None:
    def is_there() -> bool:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            return bool(ask(api, query))
        return False

    until(query, is_there)
