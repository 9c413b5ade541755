# SPDX-License-Identifier: Apache-2.0
"""A cluster is read in batches while groups change; `python -m tests.large_cluster` reads more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.broker import Broker, missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")

from kafka_rebalance.cli import main
from kafka_rebalance.live import Progress, consumer_groups, snapshot_lines
from tests.large_cluster.__main__ import differences
from tests.large_cluster.members import PROPERTIES, LightGroups, create_topics, topic_names
from tests.support.live_members import await_coordinators

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.live

GROUPS, BATCH = 60, 25
TOPICS = topic_names(10)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    missing = missing_tools()
    if missing:
        pytest.skip(missing)
    with Broker(properties=PROPERTIES) as broker:
        create_topics(broker.bootstrap_server, TOPICS)
        await_coordinators(broker.bootstrap_server, [f"group-{n:05}" for n in range(GROUPS)])
        yield broker.bootstrap_server


def test_groups_that_change_while_the_cluster_is_read_are_counted(
    server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three groups of the third batch change after the first batch; the other groups are read as
    formed.
    """
    monkeypatch.setattr(consumer_groups, "BATCH", BATCH)
    progress: list[Progress] = []
    left_out: dict[str, str] = {}
    with LightGroups(server, TOPICS) as groups:
        names = [groups.add(number) for number in range(GROUPS)]
        lines = snapshot_lines(
            server, on_left_out=left_out.__setitem__, on_progress=progress.append
        )
        read = {line["group_id"]: line for line in [next(lines)]}
        emptied, rebalancing, again = names[-3:]
        groups.leave(emptied)
        groups.join(rebalancing, list(TOPICS)[:1], next(iter(groups.owned[rebalancing])))
        groups.leave(again)
        groups.add(GROUPS - 1)
        read |= {line["group_id"]: line for line in lines}
        assert read[rebalancing]["error"].startswith("state: CompletingRebalance, ")
        assert left_out.keys() == {emptied}
        assert differences(groups, read, {emptied, rebalancing}) == []
        assert main(["snapshot", "--bootstrap-server", server]) == 3
        assert capsys.readouterr().err.endswith(" 1 line with an error, 1 group left out\n")
    assert progress == [
        Progress(0, GROUPS, 0),
        Progress(BATCH, GROUPS, 0),
        Progress(2 * BATCH, GROUPS, 0),
        Progress(GROUPS, GROUPS, 2),
    ]
