# SPDX-License-Identifier: Apache-2.0
"""Names and ids of members that do not exist yet.

Nobody knows what a broker will call a new member, but everybody knows the pattern: a name (the
client id, or the instance id of a static member), a dash, a random UUID. The UUID is drawn here
from the group's id, a number of the draw and a counter, so that the same plan names the same ids,
and another draw others.

The name is a guess, unless it is given: the newcomer is called as the next one of its kind.

    given     by the change: `client-id=`, `instance-id=`
    shared    all members have the same client id, and so has the newcomer
    counted   the name's own count goes on: orders-9, orders-10; an instance id always: app, app-2
    copied    that of the member that the newcomer is like: it has no number, or some share it
    known     the member restarts, and keeps its name

Names decide: `range` and `roundrobin` go through the members in the order of their ids. A draw
therefore puts a guessed name (counted, copied) in another place among those that are there.
Mirror, without draws: `src/changes/made_up.rs`.

Source   GroupMetadataManager's member ids: `clientId + "-" + UUID` (KIP-394, KIP-345).
"""

import re
import uuid
from collections.abc import Collection, Iterator, Sequence
from enum import Enum
from itertools import chain, repeat
from typing import NamedTuple

_UUID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_NUMBER = re.compile(r"[0-9]{0,9}\Z")


class Basis(Enum):
    """How a newcomer came by its name."""

    GIVEN = "given"
    SHARED = "shared"
    COUNTED = "counted"
    COPIED = "copied"
    KNOWN = "known"

    @property
    def is_guess(self) -> bool:
        return self in (Basis.COUNTED, Basis.COPIED)


class Newcomer(NamedTuple):
    """A member under an id that is made up; `name` is all of it before the UUID."""

    member_id: str
    name: str
    basis: Basis
    is_static: bool


class MadeUp:
    """Makes ids up, never one twice; draw 0 is the plan's own, 1 to `draws` are for sampling.

    `made` are the members so far, in order. `instead_of` are those of draw 0 of the same plan:
    `aliases` has what their member and instance ids are in this draw, `client_aliases` what their
    client ids are.
    """

    def __init__(
        self, group_id: str, draw: int = 0, draws: int = 1, instead_of: Sequence[Newcomer] = ()
    ) -> None:
        self._group_id = group_id
        self._draw = draw
        self._draws = draws
        self._count = 0
        self._instead_of = iter(instead_of)
        self.made: list[Newcomer] = []
        self.places_guessed = False
        self.aliases: dict[str, str] = {}
        self.client_aliases: dict[str, str] = {}

    def newcomer(
        self, name: str, basis: Basis, taken: Collection[str], *, is_static: bool
    ) -> Newcomer:
        """`name`, a dash and a UUID; the id is none of `taken`."""
        while True:
            random = uuid.uuid5(uuid.NAMESPACE_OID, f"{self._group_id}/{self._draw}/{self._count}")
            self._count += 1
            member_id = f"{name}-{uuid.UUID(bytes=random.bytes, version=4)}"
            if member_id not in taken:
                break
        made = Newcomer(member_id, name, basis, is_static)
        self.made.append(made)
        drawn_first = next(self._instead_of, made)
        self.aliases[drawn_first.member_id] = member_id
        if basis is Basis.COUNTED:
            names = self.aliases if is_static else self.client_aliases
            names[drawn_first.name] = name
        return made

    def placement(self, racks: Sequence[str], perhaps: Collection[str]) -> list[str]:
        """The racks in the order in which new replicas go round them: a guess, so drawn.

        The plan's own draw takes `racks` as they are, by name; every second one those of `perhaps`
        as well.
        """
        self.places_guessed = True
        if self._draw == 0:
            return list(racks)
        if self._draw % 2:
            racks = sorted({*racks, *perhaps})
        seed = f"{self._group_id}/{self._draw}/{self._count}/racks"
        return sorted(racks, key=lambda rack: uuid.uuid5(uuid.NAMESPACE_OID, f"{seed}/{rack}").int)

    def place(
        self, name: str, basis: Basis, names: Sequence[str], taken: Collection[str] = ()
    ) -> str:
        """In a draw, a name elsewhere among `names` (in order) in place of a guessed one.

        Over the draws, the first newcomer stands in every place in turn, from before all names to
        after them; those that follow it are moved on by a random distance. None of `taken`.
        """
        if self._draw == 0 or not basis.is_guess:
            return name
        share = (self._draw - 0.5) / self._draws
        if self._count:
            random = uuid.uuid5(
                uuid.NAMESPACE_OID, f"{self._group_id}/{self._draw}/{self._count}/place"
            )
            share = (share + random.int / 2**128) % 1.0
        place = int(share * (len(names) + 1))
        # A dot sorts after the dash that follows a name in a member id, and before digits.
        drawn = f"{names[place - 1]}." if place else "!"
        while drawn in taken:
            drawn += "."
        return drawn


def prefix_of(client_id: str | None, member_id: str) -> str:
    """What stands before the UUID: the client id, or the member id without its UUID."""
    return client_id or _UUID.sub("", member_id) or "consumer"


def client_names(
    model: str, names: Sequence[str], given: str | None
) -> tuple[Iterator[str], Basis]:
    """Client ids of members like the one called `model`; `names` are those of all members."""
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
    """Instance ids, never one twice; `names` are those of all static members."""
    if given is not None:
        return chain([given], count_on(given, names)), Basis.GIVEN
    return count_on(model, names), Basis.COUNTED


def count_on(name: str, taken: Collection[str]) -> Iterator[str]:
    """The free names that follow in a name's own count: payments-3, payments-4; else name-2."""
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
