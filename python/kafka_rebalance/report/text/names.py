# SPDX-License-Identifier: Apache-2.0
"""Shortens names and lists of partitions for people."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from kafka_rebalance.errors import shown
from kafka_rebalance.group.model import TopicPartition

_UUID = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


def short_names(member_ids: Iterable[str], made_up: Iterable[str] = ()) -> dict[str, str]:
    """Returns member id -> short name. Each UUID is shortened while the names stay distinct.

    consumer-payments-1-0b5c2d1e-… becomes consumer-payments-1-0b5c. An id without a UUID is its own
    short name. `*` marks made-up ids.
    """
    member_ids = list(member_ids)
    invented = set(made_up)
    for digits in (4, 8, 36):
        ends = (_UUID.search(one) for one in member_ids)
        names = [
            one if end is None else one[: end.start() + 1 + digits]
            for one, end in zip(member_ids, ends, strict=True)
        ]
        if len(set(names)) == len(member_ids):
            break
    return {
        member_id: name + "*" * (member_id in invented)
        for member_id, name in zip(member_ids, names, strict=True)
    }


def member_names(
    client_ids: Mapping[str, str | None], made_up: Iterable[str] = ()
) -> dict[str, str]:
    """Returns member id -> short name, from member id -> client id; commands accept these names.

    A member of a broker-assigned group chooses a bare UUID as its id. Its short name begins
    with its client id, unless two names would then be equal.
    """
    from kafka_rebalance.plans.changes.short_names import own_short_name

    made_up = set(made_up)
    names = short_names(client_ids, made_up)
    own = {id_: own_short_name(client_id, id_) for id_, client_id in client_ids.items()}
    counts = Counter(own.values())
    for member_id, name in own.items():
        if name is not None and counts[name] == 1:
            names[member_id] = name + "*" * (member_id in made_up)
    return names


def in_words(names: Sequence[str]) -> str:
    """Returns names as a list in a sentence: "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def shortened(text: str, names: Mapping[str, str]) -> str:
    for member_id, name in names.items():
        text = text.replace(member_id, name)
    return text


def cut(text: str, width: int) -> str:
    """Returns the escaped text in at most `width` characters; a longer text loses its middle."""
    text = shown(text)
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def partitions_text(partitions: Sequence[TopicPartition], most: int | None = None) -> str:
    """Returns text such as `orders[0-3, 7] refunds-1`, cut to at most `most` characters.

    A single partition, and a single task (`0_1`), is written as Kafka writes it.
    """
    parts = []
    for topic, run in groupby(sorted(partitions), key=lambda tp: tp.topic):
        first, *more = (tp.partition for tp in run)
        one = f"{topic}{'_' if topic.isdigit() else '-'}{first}"
        parts.append(f"{topic}[{runs([first, *more])}]" if more else one)
    text = shown(" ".join(parts))
    if most is None or len(text) <= most:
        return text
    note = f" … {len(partitions)} in all"
    return text[: max(0, most - len(note))].rstrip(" ,-[") + note


def runs(numbers: Iterable[int]) -> str:
    """Returns `0-2, 5` for 0, 1, 2, 5."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def counted(number: int, noun: str) -> str:
    """Returns `1 member` or `2 members`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
