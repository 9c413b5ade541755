# SPDX-License-Identifier: Apache-2.0
"""Makes up what a plan cannot know: ids, names, racks, topic order. A *draw* is one such choice.

    named     a name (the client id, or the instance id of a static member), a dash, a random UUID;
              the broker chooses such an id in a classic group
    bare      a random UUID in base64: a member of the consumer protocol chooses its own, the broker
              chooses one for a classic member that joins a group of the consumer protocol

A draw's UUIDs depend on the group's id, the draw's number and a counter. The origins of a name:

    given     the change names it: `client-id=`, `instance-id=`
    shared    all members have the same client id, and the new member gets it too
    counted   the next number, as orders-10 after orders-9; an instance id that the change does not
              name is always counted
    copied    the name of the copied member, if the name has no number or several members have it
    known     the name of the member that restarts

Names affect the answers, because `range` and `roundrobin` sort the members by id. So every draw
except draw 0 (the plan itself) also moves a guessed name (counted, copied) to another position
among the sorted names. Mirror: `src/plans/changes/made_up.rs`.

Source   GroupMetadataManager's member ids: `clientId + "-" + UUID` (ClassicGroup.generateMemberId;
         KIP-394, KIP-345), `Uuid.randomUuid()` (classicGroupJoinToConsumerGroup; KIP-848).
"""

import re
from collections.abc import Collection, Iterator, Sequence
from enum import Enum
from itertools import chain, repeat
from typing import NamedTuple

import kafka_rebalance._core as _core
from kafka_rebalance.group.model import id_text

UUID_AT_END = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_NUMBER = re.compile(r"[0-9]{0,9}\Z")


class Basis(Enum):
    """The origin of a newcomer's name."""

    GIVEN = "given"
    SHARED = "shared"
    COUNTED = "counted"
    COPIED = "copied"
    KNOWN = "known"

    @property
    def is_guess(self) -> bool:
        return self in (Basis.COUNTED, Basis.COPIED)


class Newcomer(NamedTuple):
    """A member with a made-up id. `name` precedes the UUID, but is not part of a bare id."""

    member_id: str
    name: str
    basis: Basis
    is_static: bool


class Draw(NamedTuple):
    """One choice of made-up ids. Draw 0 has the plan's own ids; draws 1 to `of` have other ids.

    `instead_of` are the newcomers of draw 0, in join order. The newcomers of this draw replace them
    one by one.
    """

    number: int = 0
    of: int = 1
    instead_of: tuple[Newcomer, ...] = ()


PLANNED = Draw()


class MadeUp:
    """Makes up the ids of one draw, each only once; draw 0 is the plan itself.

    `made` are the newcomers so far, in order. `aliases` maps member ids and instance ids of draw 0
    to the ids of this draw; `client_aliases` maps client ids. `places_guessed`, `topics_guessed`
    and `topic_ids_guessed` are True if racks of new replicas, the order of topics in a
    subscription, or the id of a topic that does not exist yet were guessed.
    """

    def __init__(self, group_id: str, draw: Draw = PLANNED) -> None:
        self._group_id = group_id
        self._draw, self._draws, instead_of = draw
        self.count = 0
        self._instead_of = iter(instead_of)
        self.made: list[Newcomer] = []
        self.places_guessed = self.topics_guessed = self.topic_ids_guessed = False
        self.aliases: dict[str, str] = {}
        self.client_aliases: dict[str, str] = {}

    def alias(self, name: str) -> str:
        """Returns this draw's id (or instance id) for the member that has `name` in draw 0."""
        return self.aliases.get(name, name)

    def newcomer(
        self,
        name: str,
        basis: Basis,
        taken: Collection[str],
        *,
        is_static: bool,
        is_bare: bool = False,
    ) -> Newcomer:
        """Makes up an id that is not in `taken`. With `is_bare`, the id does not contain `name`."""
        while True:
            chosen = chosen_id(self._group_id, self._draw, self.count)
            self.count += 1
            member_id = id_text(chosen) if is_bare else f"{name}-{in_hex(chosen)}"
            # A random Uuid of Kafka never begins with a dash, which would sort first.
            if member_id not in taken and not (is_bare and member_id.startswith("-")):
                break
        made = Newcomer(member_id, name, basis, is_static)
        self.made.append(made)
        drawn_first = next(self._instead_of, made)
        self.aliases[drawn_first.member_id] = member_id
        if basis is Basis.COUNTED:
            names = self.aliases if is_static else self.client_aliases
            names[drawn_first.name] = name
        return made

    def process_id(self, member_id: str) -> str:
        """Returns a made-up id of the process of a new member of a streams group: a UUID."""
        return in_hex(_core.uuid5(f"{member_id}/process"))

    def topic_id(self, name: str) -> str:
        """Returns a made-up id of a topic that does not exist yet: a random UUID in base64."""
        self.topic_ids_guessed = True
        seed = f"{self._group_id}/{self._draw}/topics/{name}"
        return id_text(_core.uuid5(seed)).replace("-", "_")

    def placement(self, racks: Sequence[str], perhaps: Collection[str]) -> list[str]:
        """Returns racks for new replicas: `racks` in a guessed order; draw 0 keeps their order.

        Odd draws also use the racks in `perhaps`, which may have no brokers.
        """
        self.places_guessed = True
        if self._draw == 0:
            return list(racks)
        if self._draw % 2:
            racks = sorted({*racks, *perhaps})
        seed = f"{self._group_id}/{self._draw}/{self.count}/racks"
        return sorted(racks, key=lambda rack: _core.uuid5(f"{seed}/{rack}"))

    def listed(
        self, member_id: str, topics: tuple[str, ...], alike: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Returns the `topics` (two or more) that a new process lists, in a guessed order.

        In draw 0, the method returns `topics` unchanged. In an even draw, the first new process
        lists them in the order of another member (`alike`), in an odd draw in another order.
        For further new processes, chance decides which of these.
        """
        is_first, self.topics_guessed = not self.topics_guessed, True
        if self._draw == 0:
            return topics

        def random(text: str) -> int:
            seed = f"{self._group_id}/{self._draw}/{self.count}/{member_id}"
            return int.from_bytes(_core.uuid5(f"{seed}/{text}"))

        if (self._draw if is_first else random("order")) % 2 == 0:
            return alike
        drawn = tuple(sorted(topics, key=lambda topic: random(f"topics/{topic}")))
        return drawn if drawn != alike else drawn[::-1]

    def place(
        self, name: str, basis: Basis, names: Sequence[str], taken: Collection[str] = ()
    ) -> str:
        """Returns a name to replace the guess `name`: it sorts at another position among `names`.

        For the first newcomer, each draw takes another position, so that the draws together spread
        over all positions. For a later newcomer, a random distance is added to its position. Draw 0
        keeps `name`, and so does every draw if `name` is not a guess. A new name is not in `taken`.
        """
        if self._draw == 0 or not basis.is_guess:
            return name
        share = (self._draw - 0.5) / self._draws
        if self.count:
            random = _core.uuid5(f"{self._group_id}/{self._draw}/{self.count}/place")
            share = (share + int.from_bytes(random) / 2**128) % 1.0
        place = int(share * (len(names) + 1))
        # The new name sorts directly after `names[place - 1]`: a dot sorts before digits, but after
        # the dash that follows a name in a member id.
        drawn = f"{names[place - 1]}." if place else "!"
        while drawn in taken:
            drawn += "."
        return drawn


def chosen_id(group_id: str, draw: int, count: int) -> bytes:
    made = _core.uuid5(f"{group_id}/{draw}/{count}")  # version 5; Java's are of version 4
    return bytes((*made[:6], made[6] & 0x0F | 0x40, *made[7:]))


def in_hex(chosen: bytes) -> str:
    text = chosen.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def prefix_of(client_id: str | None, member_id: str) -> str:
    """Returns the client id; without one, the member id without its UUID; "consumer" if nothing is
    left.
    """
    return client_id or UUID_AT_END.sub("", member_id) or "consumer"


def client_names(
    model: str, names: Sequence[str], given: str | None
) -> tuple[Iterator[str], Basis]:
    """Returns client ids for copies of the member with client id `model`, and their origin; `names`
    are all client ids in use.
    """
    if given is not None:
        counted = chain([given], count_on(given, names)) if _digits(given) else repeat(given)
        return counted, Basis.GIVEN
    same = names.count(model)
    if same == 1 and _digits(model):
        return count_on(model, names), Basis.COUNTED
    return repeat(model), Basis.SHARED if same == len(names) else Basis.COPIED


def instance_names(
    model: str, names: Collection[str], given: str | None
) -> tuple[Iterator[str], Basis]:
    """Returns instance ids for copies of the member with instance id `model`, and their origin;
    `names` are in use.
    """
    if given is not None:
        return chain([given], count_on(given, names)), Basis.GIVEN
    return count_on(model, names), Basis.COUNTED


def count_on(name: str, taken: Collection[str]) -> Iterator[str]:
    """Yields the next unused names in order: payments-4 after payments-3, name-2 after name."""
    digits = _digits(name)
    stem = name.removesuffix(digits) if digits else f"{name}-"
    taken = set(taken)
    n = int(digits or 1)
    while True:
        n += 1
        following = f"{stem}{n:0{len(digits)}d}"
        if following not in taken:
            yield following


def _digits(name: str) -> str:
    number = _NUMBER.search(name)
    return number[0] if number else ""
