# SPDX-License-Identifier: Apache-2.0
"""Writes docs/settings.md: a heading for each rule on settings of clients.

python -m tools settings-page
"""

from typing import Any

from kafka_rebalance.settings.clients import LIBRARIES, Client, Library
from kafka_rebalance.settings.files import judge
from kafka_rebalance.settings.rule import Rule, Surroundings
from kafka_rebalance.settings.rules import RULES
from tests.support.imports import ROOT

PAGE = ROOT / "docs" / "settings.md"
_KAFKA = "org.apache.kafka.clients.consumer"
_AROUND = Surroundings(processing_ms=45_000, restart_ms=60_000)
# Rule -> settings that break it; the simulator plays them.
EXAMPLES: dict[str, dict[str, Any]] = {
    "heartbeat-third": {"session.timeout.ms": 30_000, "heartbeat.interval.ms": 20_000},
    "short-session": {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 2_000},
    "long-session": {"session.timeout.ms": 600_000},
    "poll-interval": {"max.poll.interval.ms": 30_000},
    "long-poll-interval": {"max.poll.interval.ms": 3_600_000},
    "range-first": {},
    "eager-listed": {
        "partition.assignment.strategy": f"{_KAFKA}.CooperativeStickyAssignor,"
        f"{_KAFKA}.RangeAssignor"
    },
    "static-restart": {"group.instance.id": "pod-0", "session.timeout.ms": 45_000},
}
_HEAD = """# Settings of clients

`check --settings` reads what a consumer is started with, and says what cannot work, before it runs:

<!-- example: orders.properties -->
```properties
group.id=orders
max.poll.interval.ms=30000
session.timeout.ms=9000
```

<!-- example: settings command -->
```console
```

It reads Java's `*.properties`; and JSON and YAML with librdkafka's names (`session.timeout.ms`, as
given to `confluent_kafka.Consumer`) or with kafka-python's arguments (`session_timeout_ms`): one
mapping for each client, at the top level. YAML needs PyYAML (the extra
`rollout`). A properties file with a name that only librdkafka has, such as `sasl.username`, is read
as librdkafka's. Standard error says which library is assumed; `--client aiokafka` names another
one. Clients with one `group.id` are also compared.

- `--processing 45s`: the longest time to process what one poll returns.
- `--restart 60s`: how long a client is away when it restarts.
- `--broker-settings server.properties`: the broker's limits, in place of Kafka's defaults.

Names that no rule reads are ignored. A setting that is missing has the default of its library. Runs
are played with Kafka's own consumer, three members and six partitions; times count from the event,
in minutes and seconds. [In CI](in-ci.md) has the exit codes, the formats and the baseline.

"""


def page(text: str) -> str:
    """Returns the page with the example's output that `text` has."""
    begin, end = "<!-- example: settings command -->\n", "\n\nIt reads"
    example = text.partition(begin)[2].partition(end)[0]
    head = _HEAD
    if example:
        head = _HEAD.partition(begin)[0] + begin + example + end + _HEAD.partition(end)[2]
    return head + "\n".join(map(_section, RULES))


def _section(rule: Rule) -> str:
    clients = "all" if rule.libraries == LIBRARIES else ", ".join(rule.libraries)
    lines = [f"## {rule.id}", "", f"**{rule.severity}** ({clients}): {rule.meaning}.", ""]
    if rule.id in EXAMPLES:
        given = EXAMPLES[rule.id]
        settings = ", ".join(f"`{name}={value}`" for name, value in given.items()) or "the defaults"
        lines.append(f"- For example, {settings.replace(_KAFKA + '.', '…')}: {played(rule)}.")
    return "\n".join([*lines, f"- Source: {rule.source}.", ""])


def played(rule: Rule) -> str | None:
    library: Library = rule.libraries[0]
    client = Client.of(library, EXAMPLES[rule.id])
    around = _AROUND._replace(
        restart_ms=_AROUND.restart_ms if rule.id == "static-restart" else None
    )
    return next(one.played for one in judge([client], around) if one.rule == rule)


if __name__ == "__main__":
    there = PAGE.read_text("utf-8") if PAGE.is_file() else ""
    PAGE.write_text(page(there), encoding="utf-8")
