# SPDX-License-Identifier: Apache-2.0
"""Prints how members of each client library change to another assignor, with settings to paste."""

from collections.abc import Sequence

from kafka_rebalance.assignors import RebalanceProtocol
from kafka_rebalance.assignors.registry import is_known, protocol_name
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans import Recipe
from kafka_rebalance.plans.clients import CLIENTS, run_several, sure_to_run
from kafka_rebalance.plans.listed import may_list_eager
from kafka_rebalance.plans.rounds import lists_eager, protocol_of
from kafka_rebalance.report.text.names import counted, shell_option
from kafka_rebalance.switching.migrations import Migration
from kafka_rebalance.switching.not_rolling import Switched
from kafka_rebalance.switching.rounds import Bounce

from .plan import print_wrapped
from .remote_switch import print_remote_switch
from .whole_switch import compare_command

_HOW = "How to switch depends on the client library, and no client id shows it:"
_TOGETHER = "The members run several clients: stop all of them together."
_HOW_BY_BYTES = "How to switch, for each client library that the members' bytes fit:"
_HOW_BY_JAVAS_BYTES = (
    "How to switch, for each client library that the members' bytes fit: they are Java's, which "
    "this project's plug-ins for kafka-python and aiokafka send too:"
)
_GROUPS_NAMED = 3


def _new_ids(migration: Migration) -> str:
    """Returns a sentence about ids, which static members' places do not depend on."""
    if not migration.dynamic_members:
        return ""
    every = migration.dynamic_members == migration.bounces[0].restarts
    who = "Restarted members" if every else "Restarted members without an instance id"
    return f" {who} get new ids, which break ties: the moves may differ."


def print_migration(migration: Migration, group_id: str) -> None:
    """Prints the cost and the steps for each client library, with settings to paste."""
    ways = {one.way for one in migration.recipes}
    if migration.moves is not None and (not ways or "rolling" in ways):
        what = "bounce" if migration.old == migration.new else "switch"
        print_wrapped(
            f"The {what} itself moves partitions: {counted(migration.moves, 'move')} in all, in "
            f"{counted(migration.rebalances, 'rebalance')}, if the members restart one after "
            f"another.{_new_ids(migration)}"
        )
    if migration.is_by_brokers:
        print_remote_switch(migration, _cost(migration.bounces[0], migration))
        return
    if not migration.is_known and migration.recipes:
        print_wrapped(_how(migration))
    for one in migration.recipes:
        _print_recipe(one, migration)
    if not migration.recipes:
        for number, bounce in enumerate(migration.bounces, 1):
            print_wrapped(f"{number}. {_cost(bounce, migration)}", "  ", "   ")
    if migration.is_known and len(migration.recipes) > 1 and "stop all" in ways:
        print_wrapped(_TOGETHER)
    if "stop all" in ways:
        _print_way_back(group_id)


def _how(migration: Migration) -> str:
    clients = {one.client for one in migration.recipes}
    if len(clients) == len(CLIENTS):
        return _HOW
    return _HOW_BY_JAVAS_BYTES if "Java" in clients else _HOW_BY_BYTES


def print_completion(migration: Migration) -> None:
    """Prints the bounce that ends an eager group's eager rounds, before another way is printed."""
    (bounce,) = migration.bounces
    print_wrapped(
        f"First, one rolling bounce with {protocol_name(migration.new)} alone ends the eager "
        f"rounds: {_counts(bounce)}. The recommendation goes beyond that; its first step replaces "
        "the eager assignor that the members list now."
    )


def print_switches(
    rolling: Sequence[Switched], refusing: Sequence[Switched], group: GroupSpec, given: str
) -> None:
    """Prints, for each switch of a plan that needs it, which clients can make it, and how.

    `rolling` are those of `by_plug_ins`, `refusing` those of `not_rolling`. `given` is the part of
    the command line that selects input and group; empty if `compare` has no such switch.
    """
    ways: set[str] = set()
    for old, new in dict.fromkeys((one.old, one.new) for one in (*rolling, *refusing)):
        named = (one for one in (*rolling, *refusing) if (one.old, one.new) == (old, new))
        recipes = {recipe.client: recipe for one in named for recipe in one.recipes}
        print_wrapped(
            f"switch-assignor={new} is planned for members that list both {protocol_name(old)} "
            f"and {protocol_name(new)} while they restart one after another."
        )
        lacking = [name for name, one in recipes.items() if one.way == "none"]
        if lacks := sure_to_run(group, lacking):
            _print_refusing([recipes[name] for name in lacks], old, new)
            print_wrapped(
                f"So this group cannot switch as long as it has members of {' or '.join(lacks)}."
            )
            continue
        ways |= {recipe.way for recipe in recipes.values()}
        can = [one for one in recipes.values() if one.way == "rolling"]
        _print_rolling(can, old, new)
        if can and given and group.assignor == old:
            print_wrapped("This has the rebalances and moves of both bounces:")
            print(compare_command(given, new))
        _print_refusing([one for one in recipes.values() if one.way != "rolling"], old, new)
    if "stop all" in ways:
        _print_stop_all(group)


def _print_rolling(recipes: Sequence[Recipe], old: str, new: str) -> None:
    if not recipes:
        return
    print_wrapped("These clients can do that:")
    for recipe in recipes:
        print_wrapped(_way(recipe, old, new))
        for number, setting in enumerate(recipe.settings, 1):
            print_wrapped(f"{number}. restart one member after another with", "  ", "   ")
            _print_settings(recipe.needs if number == 1 else None, setting)


def _print_refusing(recipes: Sequence[Recipe], old: str, new: str) -> None:
    if recipes:
        print_wrapped("These clients cannot do that:")
    for recipe in recipes:
        _print_stop(recipe, old, new)


def _print_stop_all(group: GroupSpec) -> None:
    if run_several(group):
        print_wrapped(_TOGETHER)
    is_static = all(member.group_instance_id is not None for member in group.members)
    print_wrapped(
        "If all members stop and start together, the new assignor begins without owned "
        "partitions too"
        + ("." if is_static else ", but from members with new ids: ties may go otherwise.")
    )
    _print_way_back(group.group_id)


COOPERATIVE_LISTS = (
    "Assumed: every member lists only cooperative assignors; brokers do not show the lists. "
    "A member that lists an eager one too (in a switch, after the first of two rolling bounces) "
    "is eager: at each rebalance it stops reading, and claims nothing. For such members, set "
    '"rebalance_protocol": "eager" in the line of the group; no value fits a group of which only '
    "some members list one."
)
"""The note on a cooperative group whose members may have mixed lists (`plans/listed.py`)."""


def lists_note(group_ids: Sequence[str]) -> str | None:
    """Returns the note for many groups; `group_ids` are those that may have mixed lists."""
    if not group_ids:
        return None
    few = len(group_ids) <= _GROUPS_NAMED
    return (
        f"Assumed for {counted(len(group_ids), 'cooperative group')}"
        f"{' (' + ', '.join(group_ids) + ')' if few else ''}: every member lists only cooperative "
        'assignors. For members that list others, set "rebalance_protocol": "eager" in the '
        "line of the group. --group G prints details."
    )


def own_lists_note(group: GroupSpec) -> str | None:
    """Returns the note on what members list beside the group's own cooperative assignor."""
    if may_list_eager(group, group.assignor):
        return COOPERATIVE_LISTS
    return eager_note(group, group.assignor)


def eager_note(group: GroupSpec, assignor: str | None) -> str | None:
    """Returns the note on a group that is eager although its assignor is cooperative."""
    if assignor is None or not is_known(assignor) or not lists_eager(group, assignor):
        return None
    return (
        f"The members are eager (rebalance_protocol): beside {protocol_name(assignor)}, they list "
        "an assignor that is eager only. So each rebalance stops all partitions, and no member "
        "claims what it had. A rolling bounce of members that list the cooperative assignor alone "
        "ends this."
    )


def _print_way_back(group_id: str) -> None:
    print_wrapped(
        "The group keeps its offsets. To keep the old group as a way back, start the members "
        "with a new group id, and copy the offsets while all members are stopped:"
    )
    _print_settings(*copy_commands(group_id))


def copy_commands(group_id: str) -> tuple[str, str]:
    """Returns Kafka's commands that copy offsets to another group; all members must be stopped."""
    command = "kafka-consumer-groups.sh --bootstrap-server HOST:9092 --reset-offsets"
    old, new = (shell_option("--group", one) for one in (group_id, f"{group_id}-2"))
    return (
        f"{command} {old} --all-topics --to-current --dry-run --export > offsets.csv",
        f"{command} {new} --from-file offsets.csv --execute",
    )


def _way(one: Recipe, old: str, new: str) -> str:
    """Returns the heading of a rolling recipe; kafka-python's own classes may refuse the list."""
    bounces = "two rolling bounces" if len(one.settings) == 2 else "one rolling bounce"
    if one.client != "kafka-python" or protocol_of(old) is protocol_of(new):
        return f"{_named(one)}: {bounces}"
    return (
        f"{_named(one)}: {bounces}, with this project's plug-ins: kafka-python's own "
        f"cooperative-sticky class refuses a list of both {protocol_name(old)} and "
        f"{protocol_name(new)} (KafkaConfigurationError)"
    )


def _print_recipe(one: Recipe, migration: Migration) -> None:
    if one.way != "rolling":
        _print_stop(one, migration.old, migration.new)
        return
    print_wrapped(_way(one, migration.old, migration.new))
    for number, (setting, bounce) in enumerate(
        zip(one.settings, migration.bounces, strict=True), 1
    ):
        print_wrapped(f"{number}. {_cost(bounce, migration)}", "  ", "   ")
        _print_settings(one.needs if number == 1 else None, setting)
    if one.client == "Java" and migration.from_default is not None:
        print_wrapped(
            "Members with Kafka's default list already have both assignors, range first: they need "
            f"only step 2, {_counts(migration.from_default)}.",
            "  ",
        )


def _print_stop(one: Recipe, old: str, new: str) -> None:
    """Prints the recipe of a client that cannot change by rolling bounces."""
    if one.way == "none":
        kafkas = protocol_name(new)
        (client,) = (client for client in CLIENTS if client.name == one.client)
        lacks = new if kafkas in client.assignors else kafkas
        print_wrapped(f"{_named(one)}: not possible, because it has no {lacks}")
        return
    why = f"a list must not contain both {protocol_name(old)} and {protocol_name(new)}"
    if one.client == "aiokafka":
        why = "a member joins once for each assignor in its list"
    print_wrapped(f"{_named(one)}: {why}; stop all members, then start all with")
    _print_settings(one.needs, one.settings[0])


def _named(one: Recipe) -> str:
    return "librdkafka (confluent-kafka and others)" if one.client == "librdkafka" else one.client


def _listed(migration: Migration) -> tuple[str, str]:
    """Returns the old and the new assignor's names as clients list them, without a dialect."""
    return protocol_name(migration.old), protocol_name(migration.new)


def _print_settings(*lines: str | None) -> None:
    """Prints lines without wrapping, so that they can be copied."""
    for line in lines:
        for part in (line or "").splitlines():
            print(f"     {part}")


def _counts(bounce: Bounce) -> str:
    least = "" if bounce.is_exact else "at least "
    text = f"{counted(bounce.restarts, 'restart')}, {least}"
    text += counted(bounce.rebalances, "rebalance")
    return text if bounce.moves is None else f"{text}, {counted(bounce.moves, 'move')}"


def _cost(bounce: Bounce, migration: Migration) -> str:
    text = _counts(bounce)
    old, new = _listed(migration)
    if migration.is_by_brokers:
        until = f"; {old} assigns until {bounce.takes_over}, then {new} assigns"
        return text + (until if bounce.takes_over else "")
    if bounce.takes_over is not None:
        text += (
            f"; {old} assigns until the last member without {new} "
            f"{'leaves' if bounce.takes_over.endswith('leaves') else 'has returned'}, then "
            f"{new} assigns"
        )
    cooperative = "cooperative-sticky" in (new, old)
    if cooperative and len(bounce.assignors) > 1:
        text += "; members that list both are eager"
    elif cooperative and new == "cooperative-sticky" and bounce.rebalances:
        text += "; a moving partition is revoked in one rebalance and gained in the next, and only "
        text += "moving partitions stop"
        if migration.old == migration.new or protocol_of(migration.old) is RebalanceProtocol.EAGER:
            text += "; members that have not restarted yet still stop all of theirs"
    return text
