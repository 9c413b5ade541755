# SPDX-License-Identifier: Apache-2.0
"""The migration of a group to another assignor: the settings for each client, and the cost."""

from typing import Any

from kafka_rebalance.assignors.python_libraries import PYTHON_LIBRARIES
from kafka_rebalance.assignors.registry import BUILT_IN, Engine, bare, protocol_name
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.clients import (
    HAVE_CONSUMER_PROTOCOL,
    Recipe,
    clients_of,
    clients_that_fit,
    recipe,
    remote_recipe,
)
from kafka_rebalance.plans.group_kinds import CONSUMER, protocol_kind

from .rounds import Bounce, bounce_of_one_name, one_bounce, remote_bounce, two_bounces

_KAFKAS_DEFAULT = ("range", "cooperative-sticky")
"""The default list of assignors in Kafka's Java consumer."""


class Migration(Frozen):
    """The rolling bounces from `old` to `new`, as played, and a recipe for each client library.

    There are two bounces, or one if the assignors share a protocol name, or if they are assignors
    of the brokers (KIP-848, `remote_bounce`). If `old` is `new`, the group is eager before the
    bounce (`lists_eager`), and its members list only this assignor after it.

    `from_default` is None, except from range to cooperative-sticky: then it is the single bounce
    that Java members with Kafka's default list need, because that list contains both. If
    `is_known`, client ids reveal the members' libraries, and `recipes` holds one for each library;
    else one for each library that could have sent the members' bytes (`client_library`). `recipes`
    is empty if either assignor is custom; it omits libraries without the consumer protocol if the
    brokers assign, and those that refuse mixed lists if `old` is `new`. `dynamic_members` is the
    number of members that restart with new ids. Static members keep their instance ids, and so
    their places in the order of members.
    """

    old: str
    new: str
    bounces: tuple[Bounce, ...]
    from_default: Bounce | None
    is_known: bool
    recipes: tuple[Recipe, ...]
    dynamic_members: int

    @property
    def is_by_brokers(self) -> bool:
        """Returns whether the brokers run both assignors."""
        return protocol_kind(self.new) == CONSUMER

    @property
    def rebalances(self) -> int:
        """Returns the number of rebalances in all bounces; a lower bound unless all are exact."""
        return sum(one.rebalances for one in self.bounces)

    @property
    def moves(self) -> int | None:
        """Returns the number of partitions that members gain in all bounces; None if one is not
        exact.
        """
        known = [one.moves for one in self.bounces if one.moves is not None]
        return sum(known) if len(known) == len(self.bounces) else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "from": self.old,
            "to": self.new,
            "moves": self.moves,
            "bounces": [one.to_dict() for one in self.bounces],
            "dynamic_members": self.dynamic_members,
            "from_default": None if self.from_default is None else self.from_default.to_dict(),
            "client_is_known": self.is_known,
            "recipes": [one.to_dict() for one in self.recipes],
        }


def migration(group: GroupSpec, old: str, new: str, engine: Engine = "rust") -> Migration:
    """Returns the migration from `old` to `new`, two known assignors of one `protocol_kind`."""
    clients = clients_of(group)
    named = clients or clients_that_fit(group)
    dynamic = sum(member.group_instance_id is None for member in group.members)
    if protocol_kind(new) == CONSUMER:
        recipes = (remote_recipe(one, new) for one in HAVE_CONSUMER_PROTOCOL if one in named)
        bounce = remote_bounce(group, new, engine)
        return Migration(old, new, (bounce,), None, bool(clients), tuple(recipes), dynamic)
    if protocol_name(old) == protocol_name(new):
        bounces: tuple[Bounce, ...] = (bounce_of_one_name(group, old, new, engine),)
    else:
        bounces = two_bounces(group, old, new, engine)
    from_default = None
    if (old, new) == _KAFKAS_DEFAULT:
        from_default = one_bounce(group, _KAFKAS_DEFAULT, new, engine)
    # There are no recipes for a custom assignor: the clients' settings for it are unknown.
    known = {bare(old), bare(new)} <= {*BUILT_IN, *PYTHON_LIBRARIES}
    may_mix = (one for one in (named if known else ()) if old != new or one.mixes)
    recipes = (recipe(client, old, new) for client in may_mix)
    return Migration(old, new, bounces, from_default, bool(clients), tuple(recipes), dynamic)
