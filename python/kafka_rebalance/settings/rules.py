# SPDX-License-Identifier: Apache-2.0
"""The rules for settings of clients, as data. docs/settings.md has a heading for each rule.

A rule names the clients for which it holds, its condition, its sentence, and its source. If the
effect depends on time, a run of the simulator shows what happens with these values.
tests/test_settings_rules.py has a test for each rule: the client itself, or the coordinator,
behaves as the rule states.
"""

import re

from kafka_rebalance.errors import nearest

from . import played
from .clients import COOPERATIVE, EAGER, LIBRARIES, PYTHON, SETTINGS, Client, Library
from .rule import Rule, Surroundings

_JAVA, _LIBRDKAFKA, _KAFKA_PYTHON, _AIOKAFKA = LIBRARIES
_BOTH = (_JAVA, _LIBRDKAFKA)
_LEGAL_ID = re.compile(r"[A-Za-z0-9._-]{1,249}")
_RESETS = {
    _JAVA: re.compile(r"latest|earliest|none|by_duration:.+"),
    _LIBRDKAFKA: re.compile(r"smallest|earliest|beginning|largest|latest|end|error"),
}
_ABSENT: dict[Library, tuple[str, ...]] = {
    _LIBRDKAFKA: (
        "default.api.timeout.ms", "exclude.internal.topics", "fetch.max.wait.ms",
        "interceptor.classes", "key.deserializer", "value.deserializer", "rebalance.timeout.ms",
    ),
    _KAFKA_PYTHON: ("default.api.timeout.ms", "enable.auto.offset.store", "rebalance.timeout.ms"),
    _AIOKAFKA: ("default.api.timeout.ms", "enable.auto.offset.store", "allow.auto.create.topics"),
}  # fmt: skip
"""By library: the settings of other libraries that it refuses. Java refuses none."""


def _outside(client: Client, _: Surroundings) -> dict[str, str]:
    """Returns the settings whose values are outside librdkafka's limits, each with a sentence."""
    return {
        name: f"{name} {client[name]} is not within {limits[0]} to {limits[1]}"
        for name, (*_, limits) in SETTINGS.items()
        if limits is not None and name in client
        if not limits[0] <= client[name] <= limits[1]
    }


def _misspelt(client: Client, _: Surroundings) -> dict[str, str]:
    """Returns the given names that nearly equal the name of a setting, each with a question about
    it.
    """
    near = {name: nearest(name, SETTINGS, 0.9) for name in client.names if name not in SETTINGS}
    return {name: f"{name} is not a setting; is it {one}?" for name, one in near.items() if one}


def _refused(client: Client, around: Surroundings) -> dict[str, str]:
    absent = [name for name in client.names if name in _ABSENT.get(client.library, ())]
    why = f"is not a setting of {client.library}"
    return _misspelt(client, around) | {name: f"{name} {why}" for name in absent}


def _mixes(client: Client) -> bool:
    names = {*client.assignors}
    return client.is_classic and COOPERATIVE in names and not names.isdisjoint(EAGER)


def _only_some_have_racks(client: Client, around: Surroundings) -> bool:
    of_group = (client, *around.others)
    racks = {bool(one["client.rack"]) for one in of_group if COOPERATIVE in one.assignors}
    return client.is_classic and racks == {True, False}


def _has_no_common_assignor(client: Client, around: Surroundings) -> bool:
    others = [{*one.assignors} for one in around.others if one.is_classic]
    common = set.intersection(*others) if others else set()
    return client.is_classic and bool(common) and common.isdisjoint(client.assignors)


RULES: tuple[Rule, ...] = (
    # Values ---------------------------------------------------------------------------------------
    Rule("value", (_JAVA, _LIBRDKAFKA, _KAFKA_PYTHON), "error",
        "ConfigDef.parseType (Kafka); rdkafka_conf.c (librdkafka)",
        lambda c, _: {name: f"{name}: {why}" for name, why in c.wrong.items()},
        "the client does not start, because it cannot read a value: {several}"),
    Rule("limits", (_LIBRDKAFKA,), "error", "CONFIGURATION.md, column Range (librdkafka)", _outside,
        "the client does not start, because a number is outside of its limits: {several}"),
    Rule("ignored-name", (_JAVA,), "warning", "AbstractConfig.logUnused (Kafka)", _misspelt,
        "Kafka ignores names that it does not know, so the default holds: {several}"),
    Rule("refused-name", (_LIBRDKAFKA, *PYTHON), "error",
        "rd_kafka_conf_set (librdkafka); KafkaConsumer.__init__ (kafka-python)",
        _refused, "the client does not start, because it does not know a name: {several}"),
    Rule("auto-offset-reset", _BOTH, "error",
        "AutoOffsetResetStrategy (Kafka, KIP-1106); CONFIGURATION.md (librdkafka)",
        lambda c, _: not _RESETS[c.library].fullmatch(c["auto.offset.reset"]),
        "the client does not start with {auto.offset.reset=}: Java has latest, earliest, none and "
        "by_duration, librdkafka has latest, earliest and error"),
    # Heartbeats and sessions ----------------------------------------------------------------------
    Rule("heartbeat-interval", (_JAVA, _KAFKA_PYTHON), "error",
        "Heartbeat (Kafka); kafka/coordinator/heartbeat.py (kafka-python)",
        lambda c, _: c.is_classic and c["heartbeat.interval.ms"] >= c["session.timeout.ms"],
        "the client does not start: {heartbeat.interval.ms=} is not below {session.timeout.ms=}"),
    Rule("heartbeat-too-rare", (_LIBRDKAFKA, _AIOKAFKA), "error",
        "KIP-62; the client does not compare the two",
        lambda c, _: c.is_classic and c["heartbeat.interval.ms"] >= c["session.timeout.ms"],
        "{heartbeat.interval.ms=} is not below {session.timeout.ms=}, so the session ends before "
        "the next heartbeat: the member is removed again and again"),
    Rule("heartbeat-third", LIBRARIES, "warning",
        "CommonClientConfigs.HEARTBEAT_INTERVAL_MS_DOC (Kafka)",
        lambda c, _: c.is_classic
        and c["session.timeout.ms"] / 3 < c["heartbeat.interval.ms"] < c["session.timeout.ms"],
        "{heartbeat.interval.ms=} is above a third of {session.timeout.ms=}, so one or two lost "
        "heartbeats end the session", played.shortest_pause),
    Rule("session-refused", LIBRARIES, "error", "GroupCoordinatorService.joinGroup (Kafka)",
        lambda c, a: a.refuses_session(c),
        "the broker refuses {session.timeout.ms=} with INVALID_SESSION_TIMEOUT, by its "
        "{group.min.session.timeout.ms=} and {group.max.session.timeout.ms=}"),
    Rule("short-session", LIBRARIES, "warning", "KIP-735 (the default became 45 s)",
        lambda c, a: c.is_classic and c["session.timeout.ms"] < 10_000 and not a.refuses_session(c),
        "{session.timeout.ms=} is below 10 s (Kafka's default is 45 s)", played.frozen),
    Rule("long-session", LIBRARIES, "warning", "GroupMetadataManager, session timeout (Kafka)",
        lambda c, a: c.is_classic and not a.refuses_session(c)
        and c["session.timeout.ms"] > max(120_000, a.restart_ms or 0),
        "{session.timeout.ms=} is above two minutes", played.crash),
    # Polls ----------------------------------------------------------------------------------------
    Rule("poll-interval", LIBRARIES, "error", "KIP-62; KIP-345 for static members",
        lambda c, a: (a.processing_ms or 0) > c["max.poll.interval.ms"],
        "a batch takes longer ({processing}) than {max.poll.interval.ms=}", played.slow_batch),
    Rule("poll-below-session", (_LIBRDKAFKA,), "error", "rdkafka_conf.c (librdkafka)",
        lambda c, _: c.is_classic and c["max.poll.interval.ms"] < c["session.timeout.ms"],
        "the client does not start: {max.poll.interval.ms=} is below {session.timeout.ms=}"),
    Rule("long-poll-interval", LIBRARIES, "warning", "KIP-62",
        lambda c, _: c["max.poll.interval.ms"] > 900_000,
        "{max.poll.interval.ms=} is above 15 minutes, and is the rebalance timeout, too",
        played.blocked),
    Rule("rebalance-timeout", (_AIOKAFKA,), "warning", "AIOKafkaConsumer.__init__ (aiokafka)",
        lambda c, a: (a.processing_ms or 0)
        > (c["rebalance.timeout.ms"] or c["session.timeout.ms"]),
        "a batch takes longer ({processing}) than a rebalance waits: rebalance.timeout.ms, by "
        "default {session.timeout.ms=}"),
    Rule("request-timeout", (_KAFKA_PYTHON,), "error", "KafkaConsumer.__init__ (kafka-python)",
        lambda c, _: not c["fetch.max.wait.ms"]
        < c["request.timeout.ms"]
        < c["connections.max.idle.ms"],
        "the client does not start: {request.timeout.ms=} is not above {fetch.max.wait.ms=} and "
        "below {connections.max.idle.ms=}"),
    # Lists of assignors ---------------------------------------------------------------------------
    Rule("unknown-assignor", (_LIBRDKAFKA,), "error", "rd_kafka_assignors_init (librdkafka)",
        lambda c, _: {*c["partition.assignment.strategy"]} - {"range", "roundrobin", COOPERATIVE},
        "the client does not start: librdkafka has range, roundrobin and cooperative-sticky, and "
        "partition.assignment.strategy is {partition.assignment.strategy}"),
    Rule("assignor-class", (_JAVA,), "error",
        "ConsumerPartitionAssignor.getAssignorInstances (Kafka)",
        lambda c, _: "partition.assignment.strategy" in c
        and any("." not in name for name in c["partition.assignment.strategy"]),
        "the client does not start: partition.assignment.strategy is not a list of full class "
        "names ({partition.assignment.strategy}), such as "
        "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"),
    Rule("no-assignor", (_KAFKA_PYTHON,), "error", "kafka/coordinator/consumer.py (kafka-python)",
        lambda c, _: c.is_classic and not c["partition.assignment.strategy"],
        "the client does not start: partition.assignment.strategy is empty"),
    Rule("mixed-assignors", (_LIBRDKAFKA, _KAFKA_PYTHON), "error",
        "rd_kafka_assignors_init (librdkafka); _validate_rebalance_protocol (kafka-python)",
        lambda c, _: _mixes(c),
        "the client does not start: an eager assignor stands beside cooperative-sticky "
        "({partition.assignment.strategy}); change while no member runs, or by way of KIP-848"),
    Rule("range-first", (_JAVA,), "info",
        "ConsumerCoordinator, selection of the protocol (Kafka, KIP-429)",
        lambda c, _: _mixes(c) and c.assignors[0] != COOPERATIVE,
        "list cooperative-sticky alone in partition.assignment.strategy: with an eager assignor "
        "there ({partition.assignment.strategy}), every rebalance leaves all partitions without a "
        "reader", played.join),
    Rule("eager-listed", (_JAVA,), "warning",
        "ConsumerCoordinator, selection of the protocol (Kafka, KIP-429)",
        lambda c, _: _mixes(c) and c.assignors[0] == COOPERATIVE,
        "cooperative-sticky assigns, but an eager assignor in partition.assignment.strategy keeps "
        "every rebalance eager; take it out in a second rolling restart", played.join),
    Rule("no-common-assignor", LIBRARIES, "error", "ClassicGroup.supportsProtocols (Kafka)",
        _has_no_common_assignor,
        "no assignor is in partition.assignment.strategy of all clients of the group: the broker "
        "refuses one of them with INCONSISTENT_GROUP_PROTOCOL"),
    # Static members -------------------------------------------------------------------------------
    Rule("instance-id", (_JAVA,), "error", "JoinGroupRequest.validateGroupInstanceId (Kafka)",
        lambda c, _: "group.instance.id" in c and not _LEGAL_ID.fullmatch(c["group.instance.id"]),
        "the client does not start: {group.instance.id=} is not 1 to 249 of the characters A-Z, "
        "a-z, 0-9, '.', '_' and '-'"),
    Rule("same-instance", LIBRARIES, "error", "KIP-345",
        lambda c, a: c["group.instance.id"]
        and c["group.instance.id"] in [one["group.instance.id"] for one in a.others],
        "{group.instance.id=} is that of another client of the group: the later one replaces it, "
        "and the broker answers the replaced one with FENCED_INSTANCE_ID"),
    Rule("static-restart", LIBRARIES, "warning", "KIP-345",
        lambda c, a: c.is_classic and c["group.instance.id"]
        and (a.restart_ms or 0) >= c["session.timeout.ms"],
        "a restart takes as long ({restart}) as {session.timeout.ms=} or longer, so "
        "group.instance.id saves no rebalance", played.restart),
    # Racks ----------------------------------------------------------------------------------------
    Rule("rack-ignored", LIBRARIES, "info",
        "RoundRobinAssignor, KIP-881; KAFKA-19387 for the broker's assignors",
        lambda c, _: c["client.rack"] and (not c.is_classic or c.assignors == ("roundrobin",)),
        "{client.rack=} has no effect on the assignment, only on the replica that is read: "
        "roundrobin and the broker's assignors do not look at racks"),
    Rule("some-racks", (_LIBRDKAFKA,), "warning", "docs/behaviour/librdkafka.md",
        _only_some_have_racks,
        "only some clients of the group set client.rack: librdkafka's cooperative-sticky may then "
        "rebalance for ever"),
    # The consumer protocol ------------------------------------------------------------------------
    Rule("group-protocol", _BOTH, "error", "ConsumerConfig (Kafka); CONFIGURATION.md (librdkafka)",
        lambda c, _: str(c["group.protocol"]).lower() not in ("classic", "consumer"),
        "the client does not start: {group.protocol=} is neither classic nor consumer"),
    Rule("no-consumer-protocol", PYTHON, "error",
        "KafkaConsumer.DEFAULT_CONFIG (kafka-python); AIOKafkaConsumer (aiokafka)",
        lambda c, _: "group.protocol" in c or "group.remote.assignor" in c,
        "the client does not start: this library has only the classic protocol, and no setting "
        "group.protocol or group.remote.assignor"),
    *(
        Rule(f"consumer-{name.removesuffix('.ms').replace('.', '-')}", _BOTH, "error",
            "ConsumerConfig.checkUnsupportedConfigsPostProcess (Kafka, KIP-848); rdkafka_conf.c "
            "(librdkafka)",
            lambda c, _, name=name: not c.is_classic and name in c,  # type: ignore[misc]
            f"the client does not start: {name} and group.protocol=consumer exclude each other; "
            f"set {instead}")
        for name, instead in (
            ("session.timeout.ms", "group.consumer.session.timeout.ms at the broker"),
            ("heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms at the broker"),
            ("partition.assignment.strategy", "group.remote.assignor"),
        )
    ),
    Rule("consumer-protocol-type", (_LIBRDKAFKA,), "error", "rdkafka_conf.c (librdkafka)",
        lambda c, _: not c.is_classic and "group.protocol.type" in c,
        "the client does not start: group.protocol.type and group.protocol=consumer exclude each "
        "other"),
    Rule("remote-assignor-refused", (_JAVA,), "error",
        "ConsumerConfig.checkUnsupportedConfigsPostProcess (Kafka, KIP-848)",
        lambda c, _: c.is_classic and "group.remote.assignor" in c,
        "the client does not start: {group.remote.assignor=} needs group.protocol=consumer"),
    Rule("remote-assignor-ignored", (_LIBRDKAFKA,), "warning",
        "CONFIGURATION.md, group.remote.assignor (librdkafka)",
        lambda c, _: c.is_classic and "group.remote.assignor" in c,
        "{group.remote.assignor=} has no effect without group.protocol=consumer"),
    Rule("remote-assignor-unknown", _BOTH, "error", "GroupMetadataManager (Kafka, KIP-848)",
        lambda c, a: not c.is_classic
        and (c["group.remote.assignor"] or "uniform") not in a.broker.group_consumer_assignors,
        "the broker answers UNSUPPORTED_ASSIGNOR to {group.remote.assignor=}, which is not in its "
        "group.consumer.assignors: {group.consumer.assignors}"),
    # Commits --------------------------------------------------------------------------------------
    Rule("stored-before-processed", (_LIBRDKAFKA,), "info",
        "CONFIGURATION.md, enable.auto.offset.store (librdkafka)",
        lambda c, _: c["enable.auto.commit"] and c["enable.auto.offset.store"],
        "with enable.auto.commit, a message counts as read when it is handed to the application: "
        "after a crash, the messages in work are lost; set enable.auto.offset.store to false and "
        "store offsets after the work"),
)  # fmt: skip
