# SPDX-License-Identifier: Apache-2.0
"""Notes on a switch to the consumer protocol: known bugs, racks that no longer count, the steps.

No request shows the version of a client, so each bug is named with the versions that have it.

Source   the links in KNOWN_BUGS, read on 2026-11-29; KAFKA-19387.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from kafka_rebalance.plans.figures import share_text
from kafka_rebalance.plans.rebalance_plan import RebalancePlan

from .findings import Note


class KnownBug(NamedTuple):
    """A bug in groups of the consumer protocol. `of` is a client library or "brokers"."""

    of: str
    versions: str
    problem: str
    link: str

    def __str__(self) -> str:
        return f"{self.of} {self.versions}: {self.problem} ({self.link})"


KNOWN_BUGS = (
    KnownBug(
        "librdkafka",
        "2.12.0 to 2.14.2",
        "a member that exceeds max.poll.interval.ms ends with the fatal error INVALID_REQUEST, and "
        "heartbeats with a permanent error are repeated for ever",
        "https://github.com/confluentinc/librdkafka/issues/5541",
    ),
    KnownBug(
        "librdkafka",
        "before 2.13.0, on Windows",
        "two members can choose one member id",
        "https://github.com/confluentinc/librdkafka/pull/5265",
    ),
    KnownBug(
        "brokers",
        "of 4.0 and 4.1 without the fix of KAFKA-19862, of December 2025",
        "a coordinator can fail to load its groups while the log is compacted",
        "https://github.com/apache/kafka/pull/20907",
    ),
    KnownBug(
        "brokers",
        "without the fix of KAFKA-21117, open in September 2026",
        "a coordinator can fail to load a group that has gone back to the classic protocol",
        "https://github.com/apache/kafka/pull/23514",
    ),
)


def doctor_notes(plan: RebalancePlan, libraries: Collection[str]) -> Iterator[Note]:
    """Yields the notes on a switch to the consumer protocol; `libraries` names the members'
    libraries, with "" for an unknown one.
    """
    named = ("brokers", *KNOWN_LIBRARIES) if "" in libraries else ("brokers", *libraries)
    bugs = [one for one in KNOWN_BUGS if one.of in named]
    text = "\n".join(["Known bugs, with the versions that have them:", *map(str, bugs)])
    yield Note("bugs", text, detail={"bugs": [one._asdict() for one in bugs]})
    figures = plan.figures()
    before, after = figures.rack_share_before, figures.rack_share_after
    if before is not None and after is not None and after < before:
        yield Note(
            "racks",
            f"The brokers' assignors ignore racks (KAFKA-19387): {share_text(before)} of the "
            f"partitions are read in the rack of a replica now, {share_text(after)} afterwards. "
            "The others are read across racks, which costs traffic.",
            detail={"before": before, "after": after},
        )
    yield Note(
        "steps",
        "Order: 1. brokers, 2. versions of clients, 3. their settings (`kafka-rebalance check "
        "--settings FILE` names those that a client with group.protocol=consumer refuses or "
        "ignores), 4. one member, 5. the others one after another. Keep this plan as JSON (--json "
        "> PLAN.json); afterwards `kafka-rebalance check --switched PLAN.json` compares the group.",
    )


KNOWN_LIBRARIES = tuple(dict.fromkeys(one.of for one in KNOWN_BUGS if one.of != "brokers"))
