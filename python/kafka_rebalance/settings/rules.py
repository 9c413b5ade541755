# SPDX-License-Identifier: Apache-2.0
"""The rules for settings of clients, as data. docs/settings.md has a heading for each rule.

A rule names the clients for which it holds, its condition, its sentence, and the place from which
it comes. In a sentence, `{session.timeout.ms}` stands for the value of that setting, and
`{processing}` for a value of the surroundings. If time decides, a run of the simulator shows what
happens with these numbers. tests/test_settings_rules.py has a test for each rule, in which the
client itself, or the coordinator, does what the rule says.
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
"""Settings that other libraries have, and this one refuses."""

_LONG_POLL_MS, _LONG_SESSION_MS, _SHORT_SESSION_MS = 900_000, 120_000, 10_000


def _never(_: Client, __: Surroundings) -> bool:
    """Is the condition of rules with several settings, which are wrong if there are any."""
    return False


def _wrong(client: Client) -> dict[str, str]:
    return {name: f"{name}: {why}" for name, why in client.wrong.items()}


def _outside(client: Client) -> dict[str, str]:
    """Returns the settings outside of librdkafka's limits, each with the limits."""
    return {
        name: f"{name} {client[name]} is not within {least} to {most}"
        for name, setting in SETTINGS.items()
        if setting.limits is not None and name in client
        for least, most in [setting.limits]
        if not least <= client[name] <= most
    }


def _misspelt(client: Client) -> dict[str, str]:
    """Returns the names that are nearly those of settings, each with the question."""
    found = {}
    for name in client.given:
        near = nearest(name, SETTINGS, 0.9)
        if near and name not in SETTINGS:
            found[name] = f"{name} is not a setting; is it {near}?"
    return found


def _refused(client: Client) -> dict[str, str]:
    absent = _ABSENT.get(client.library, ())
    there = {name: f"{name} is not a setting of {client.library}" for name in absent}
    return _misspelt(client) | {name: there[name] for name in client.given if name in there}


def _mixes(client: Client) -> bool:
    names = {*client.assignors}
    return client.is_classic and COOPERATIVE in names and not names.isdisjoint(EAGER)


def _is_slow(client: Client, around: Surroundings) -> bool:
    return (around.processing_ms or 0) > int(client["max.poll.interval.ms"])


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
    Rule("value", (_JAVA, _LIBRDKAFKA, _KAFKA_PYTHON), "error", _wrong, _never,
        "the client does not start, because it cannot read a value: {several}",
        "ConfigDef.parseType (Kafka); rdkafka_conf.c (librdkafka)"),
    Rule("limits", (_LIBRDKAFKA,), "error", _outside, _never,
        "the client does not start, because a number is outside of its limits: {several}",
        "CONFIGURATION.md, column Range (librdkafka)"),
    Rule("ignored-name", (_JAVA,), "warning", _misspelt, _never,
        "Kafka ignores names that it does not know, so the default holds: {several}",
        "AbstractConfig.logUnused (Kafka)"),
    Rule("refused-name", (_LIBRDKAFKA, *PYTHON), "error", _refused, _never,
        "the client does not start, because it does not know a name: {several}",
        "rd_kafka_conf_set (librdkafka); KafkaConsumer.__init__ (kafka-python)"),
    Rule("auto-offset-reset", _BOTH, "error", "auto.offset.reset",
        lambda c, _: not _RESETS[c.library].fullmatch(c["auto.offset.reset"]),
        "the client does not start with auto.offset.reset {auto.offset.reset}: Java has latest, "
        "earliest, none and by_duration, librdkafka has latest, earliest and error",
        "AutoOffsetResetStrategy (Kafka, KIP-1106); CONFIGURATION.md (librdkafka)"),
    # Heartbeats and sessions ----------------------------------------------------------------------
    Rule("heartbeat-interval", (_JAVA, _KAFKA_PYTHON), "error", "heartbeat.interval.ms",
        lambda c, _: c.is_classic and c["heartbeat.interval.ms"] >= c["session.timeout.ms"],
        "the client does not start: heartbeat.interval.ms {heartbeat.interval.ms} is not below "
        "session.timeout.ms {session.timeout.ms}",
        "Heartbeat (Kafka); kafka/coordinator/heartbeat.py (kafka-python)"),
    Rule("heartbeat-too-rare", (_LIBRDKAFKA, _AIOKAFKA), "error", "heartbeat.interval.ms",
        lambda c, _: c.is_classic and c["heartbeat.interval.ms"] >= c["session.timeout.ms"],
        "session.timeout.ms {session.timeout.ms} ends before heartbeat.interval.ms "
        "{heartbeat.interval.ms} is over: the member is removed again and again",
        "KIP-62; the client does not compare the two"),
    Rule("heartbeat-third", LIBRARIES, "warning", "heartbeat.interval.ms",
        lambda c, _: c.is_classic
        and c["session.timeout.ms"] / 3 < c["heartbeat.interval.ms"] < c["session.timeout.ms"],
        "heartbeat.interval.ms {heartbeat.interval.ms} is above a third of session.timeout.ms "
        "{session.timeout.ms}, so one or two lost heartbeats end the session",
        "CommonClientConfigs.HEARTBEAT_INTERVAL_MS_DOC (Kafka)",
        lambda s, _: played.shortest_pause(s)),
    Rule("session-refused", LIBRARIES, "error", "session.timeout.ms",
        lambda c, a: a.refuses_session(c),
        "the broker refuses session.timeout.ms {session.timeout.ms} with INVALID_SESSION_TIMEOUT, "
        "by its group.min.session.timeout.ms {least} and group.max.session.timeout.ms {most}",
        "GroupCoordinatorService.joinGroup (Kafka)"),
    Rule("short-session", LIBRARIES, "warning", "session.timeout.ms",
        lambda c, a: c.is_classic
        and c["session.timeout.ms"] < _SHORT_SESSION_MS
        and not a.refuses_session(c),
        "session.timeout.ms {session.timeout.ms} is below 10 s",
        "KIP-735 (the default became 45 s)",
        lambda s, _: played.frozen(s, s.config.session_timeout_ms + 1_000)),
    Rule("long-session", LIBRARIES, "warning", "session.timeout.ms",
        lambda c, a: c.is_classic
        and c["session.timeout.ms"] > max(_LONG_SESSION_MS, a.restart_ms or 0)
        and not a.refuses_session(c),
        "session.timeout.ms {session.timeout.ms} is above two minutes",
        "GroupMetadataManager, session timeout (Kafka)",
        lambda s, _: played.crash(s)),
    # Polls ----------------------------------------------------------------------------------------
    Rule("poll-interval", LIBRARIES, "error", "max.poll.interval.ms",
        _is_slow,
        "a batch takes longer ({processing}) than max.poll.interval.ms {max.poll.interval.ms}",
        "KIP-62; KIP-345 for static members",
        lambda s, a: played.slow_batch(s, a.processing_ms or 0)),
    Rule("poll-below-session", (_LIBRDKAFKA,), "error", "max.poll.interval.ms",
        lambda c, _: c.is_classic and c["max.poll.interval.ms"] < c["session.timeout.ms"],
        "the client does not start: max.poll.interval.ms {max.poll.interval.ms} is below "
        "session.timeout.ms {session.timeout.ms}",
        "rdkafka_conf.c (librdkafka)"),
    Rule("long-poll-interval", LIBRARIES, "warning", "max.poll.interval.ms",
        lambda c, _: c["max.poll.interval.ms"] > _LONG_POLL_MS,
        "max.poll.interval.ms {max.poll.interval.ms} is above 15 minutes, and is the rebalance "
        "timeout, too",
        "KIP-62",
        lambda s, _: played.blocked(s)),
    Rule("rebalance-timeout", (_AIOKAFKA,), "warning", "rebalance.timeout.ms",
        lambda c, a: (a.processing_ms or 0)
        > (c["rebalance.timeout.ms"] or c["session.timeout.ms"]),
        "a batch takes longer ({processing}) than a rebalance waits: rebalance.timeout.ms, by "
        "default session.timeout.ms {session.timeout.ms}",
        "AIOKafkaConsumer.__init__ (aiokafka)"),
    Rule("request-timeout", (_KAFKA_PYTHON,), "error", "request.timeout.ms",
        lambda c, _: not c["fetch.max.wait.ms"]
        < c["request.timeout.ms"]
        < c["connections.max.idle.ms"],
        "the client does not start: request.timeout.ms {request.timeout.ms} is not above "
        "fetch.max.wait.ms {fetch.max.wait.ms} and below connections.max.idle.ms "
        "{connections.max.idle.ms}",
        "KafkaConsumer.__init__ (kafka-python)"),
    # Lists of assignors ---------------------------------------------------------------------------
    Rule("unknown-assignor", (_LIBRDKAFKA,), "error", "partition.assignment.strategy",
        lambda c, _: {*c["partition.assignment.strategy"]} - {"range", "roundrobin", COOPERATIVE},
        "the client does not start: librdkafka has range, roundrobin and cooperative-sticky, and "
        "partition.assignment.strategy is {partition.assignment.strategy}",
        "rd_kafka_assignors_init (librdkafka)"),
    Rule("assignor-class", (_JAVA,), "error", "partition.assignment.strategy",
        lambda c, _: "partition.assignment.strategy" in c
        and any("." not in name for name in c["partition.assignment.strategy"]),
        "the client does not start: partition.assignment.strategy is not a list of full class "
        "names ({partition.assignment.strategy}), such as "
        "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
        "ConsumerPartitionAssignor.getAssignorInstances (Kafka)"),
    Rule("no-assignor", (_KAFKA_PYTHON,), "error", "partition.assignment.strategy",
        lambda c, _: c.is_classic and not c["partition.assignment.strategy"],
        "the client does not start: partition.assignment.strategy is empty",
        "kafka/coordinator/consumer.py (kafka-python)"),
    Rule("mixed-assignors", (_LIBRDKAFKA, _KAFKA_PYTHON), "error", "partition.assignment.strategy",
        lambda c, _: _mixes(c),
        "the client does not start: an eager assignor stands beside cooperative-sticky "
        "({partition.assignment.strategy}); change while no member runs, or by way of KIP-848",
        "rd_kafka_assignors_init (librdkafka); _validate_rebalance_protocol (kafka-python)"),
    Rule("range-first", (_JAVA,), "info", "partition.assignment.strategy",
        lambda c, _: _mixes(c) and c.assignors[0] != COOPERATIVE,
        "an eager assignor stands before cooperative-sticky, so it assigns, and every rebalance "
        "stops all partitions: {partition.assignment.strategy}",
        "ConsumerCoordinator, selection of the protocol (Kafka, KIP-429)",
        lambda s, _: played.join(s)),
    Rule("eager-listed", (_JAVA,), "warning", "partition.assignment.strategy",
        lambda c, _: _mixes(c) and c.assignors[0] == COOPERATIVE,
        "cooperative-sticky assigns, but an eager assignor in the list keeps every rebalance "
        "eager; take it out in a second rolling restart",
        "ConsumerCoordinator, selection of the protocol (Kafka, KIP-429)",
        lambda s, _: played.join(s)),
    Rule("no-common-assignor", LIBRARIES, "error", "partition.assignment.strategy",
        _has_no_common_assignor,
        "no assignor is in the lists of all clients of the group: the broker refuses one of them "
        "with INCONSISTENT_GROUP_PROTOCOL",
        "ClassicGroup.supportsProtocols (Kafka)"),
    # Static members -------------------------------------------------------------------------------
    Rule("instance-id", (_JAVA,), "error", "group.instance.id",
        lambda c, _: "group.instance.id" in c and not _LEGAL_ID.fullmatch(c["group.instance.id"]),
        "the client does not start: group.instance.id {group.instance.id} is not 1 to 249 of the "
        "characters A-Z, a-z, 0-9, '.', '_' and '-'",
        "JoinGroupRequest.validateGroupInstanceId (Kafka)"),
    Rule("same-instance", LIBRARIES, "error", "group.instance.id",
        lambda c, a: c.is_static
        and c["group.instance.id"] in [one["group.instance.id"] for one in a.others],
        "group.instance.id {group.instance.id} is that of another client of the group: the later "
        "one replaces it, and the broker answers the replaced one with FENCED_INSTANCE_ID",
        "KIP-345"),
    Rule("static-restart", LIBRARIES, "warning", "session.timeout.ms",
        lambda c, a: c.is_classic
        and c.is_static
        and (a.restart_ms or 0) >= c["session.timeout.ms"],
        "a restart takes as long ({restart}) as session.timeout.ms {session.timeout.ms} or longer, "
        "so group.instance.id saves no rebalance",
        "KIP-345",
        lambda s, a: played.restart(s, a.restart_ms or 0)),
    # Racks ----------------------------------------------------------------------------------------
    Rule("rack-ignored", LIBRARIES, "info", "client.rack",
        lambda c, _: c["client.rack"]
        and (not c.is_classic or c.assignors == ("roundrobin",)),
        "client.rack {client.rack} has no effect on the assignment, only on the replica that is "
        "read: roundrobin and the broker's assignors do not look at racks",
        "RoundRobinAssignor, KIP-881; KAFKA-19387 for the broker's assignors"),
    Rule("some-racks", (_LIBRDKAFKA,), "warning", "client.rack",
        _only_some_have_racks,
        "only some clients of the group set client.rack: librdkafka's cooperative-sticky may then "
        "rebalance for ever",
        "docs/behaviour/librdkafka.md"),
    # The consumer protocol ------------------------------------------------------------------------
    Rule("group-protocol", _BOTH, "error", "group.protocol",
        lambda c, _: str(c["group.protocol"]).lower() not in ("classic", "consumer"),
        "the client does not start: group.protocol {group.protocol} is neither classic nor "
        "consumer",
        "ConsumerConfig (Kafka); CONFIGURATION.md (librdkafka)"),
    Rule("no-consumer-protocol", PYTHON, "error", "group.protocol",
        lambda c, _: "group.protocol" in c or "group.remote.assignor" in c,
        "the client does not start: this library has only the classic protocol, and no setting "
        "group.protocol or group.remote.assignor",
        "KafkaConsumer.DEFAULT_CONFIG (kafka-python); AIOKafkaConsumer (aiokafka)"),
    *(
        Rule(f"consumer-{name.removesuffix('.ms').replace('.', '-')}", _BOTH, "error", name,
            lambda c, _, name=name: not c.is_classic and name in c,  # type: ignore[misc]
            f"the client does not start: group.protocol=consumer and {name} exclude each other; "
            f"{instead}",
            "ConsumerConfig.checkUnsupportedConfigsPostProcess (Kafka, KIP-848); rdkafka_conf.c "
            "(librdkafka)")
        for name, instead in (
            ("session.timeout.ms", "set group.consumer.session.timeout.ms at the broker"),
            ("heartbeat.interval.ms", "set group.consumer.heartbeat.interval.ms at the broker"),
            ("partition.assignment.strategy", "set group.remote.assignor"),
        )
    ),
    Rule("consumer-protocol-type", (_LIBRDKAFKA,), "error", "group.protocol.type",
        lambda c, _: not c.is_classic and "group.protocol.type" in c,
        "the client does not start: group.protocol=consumer and group.protocol.type exclude each "
        "other",
        "rdkafka_conf.c (librdkafka)"),
    Rule("remote-assignor-refused", (_JAVA,), "error", "group.remote.assignor",
        lambda c, _: c.is_classic and "group.remote.assignor" in c,
        "the client does not start: group.remote.assignor {group.remote.assignor} needs "
        "group.protocol=consumer",
        "ConsumerConfig.checkUnsupportedConfigsPostProcess (Kafka, KIP-848)"),
    Rule("remote-assignor-ignored", (_LIBRDKAFKA,), "warning", "group.remote.assignor",
        lambda c, _: c.is_classic and "group.remote.assignor" in c,
        "group.remote.assignor {group.remote.assignor} has no effect without "
        "group.protocol=consumer",
        "CONFIGURATION.md, group.remote.assignor (librdkafka)"),
    Rule("remote-assignor-unknown", _BOTH, "error", "group.remote.assignor",
        lambda c, a: not c.is_classic
        and (c["group.remote.assignor"] or "uniform") not in a.broker.group_consumer_assignors,
        "the broker answers UNSUPPORTED_ASSIGNOR to group.remote.assignor {group.remote.assignor}, "
        "which is not in its group.consumer.assignors: {server assignors}",
        "GroupMetadataManager (Kafka, KIP-848)"),
    # Commits --------------------------------------------------------------------------------------
    Rule("stored-before-processed", (_LIBRDKAFKA,), "info", "enable.auto.commit",
        lambda c, _: c["enable.auto.commit"] and c["enable.auto.offset.store"],
        "a message counts as read when it is handed to the application: after a crash, the "
        "messages in work are lost; set enable.auto.offset.store to false and store offsets after "
        "the work",
        "CONFIGURATION.md, enable.auto.offset.store (librdkafka)"),
)  # fmt: skip
