# SPDX-License-Identifier: Apache-2.0
"""Answers requests for the controller: to create, grow and delete topics, and to set configs."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from kafka_rebalance.coordinator.machine.events import ClusterTopic
from kafka_rebalance.errors import GroupError

from .batches import Refused
from .cluster import MOST_PARTITIONS, NODE, TOO_MANY, Cluster, ServedTopic, is_legal
from .configs import Configs, changed
from .frames import Asked, KafkaError
from .group_configs import GROUP, GroupConfigs
from .topic_configs import TOPIC, TopicConfigs

_SENDER_CHOOSES = -1
_BROKER, _LOGGER, _METRICS = 4, 8, 16
"""The numbers of the other types of resources in DescribeConfigs."""


def answer(
    cluster: Cluster, groups: GroupConfigs, asked: Asked
) -> tuple[Mapping[str, Any], list[ClusterTopic]] | None:
    """Returns the fields of the response and the deleted topics; None for another request."""
    configs: Mapping[int, Configs] = {TOPIC: TopicConfigs(cluster), GROUP: groups}
    match asked.api:
        case "create_topics":
            return {"topics": _each(asked, lambda one: _create(cluster, one, asked.body))}, []
        case "create_partitions":
            return {"results": _each(asked, lambda one: _grow(cluster, one, asked.body))}, []
        case "delete_topics":
            return _delete(cluster, asked)
        case "describe_configs":
            return {
                "results": [_described(configs, one, asked) for one in asked.body.resources]
            }, []
        case "incremental_alter_configs" | "alter_configs":
            several = asked.body.resources
            named = Counter((one.resource_type, one.resource_name) for one in several)
            twice = [named[one.resource_type, one.resource_name] > 1 for one in several]
            answers = zip(several, twice, strict=True)
            altered = [_altered(configs, one, asked, is_repeated=n) for one, n in answers]
            return {"responses": altered}, []
        case "list_config_resources":
            return _listed(cluster, groups, asked), []
    return None


def _described(configs: Mapping[int, Configs], one: Any, asked: Asked) -> dict[str, Any]:
    """Returns a resource's settings; none for a broker, where all settings have their defaults."""
    found, error = configs.get(one.resource_type), asked.error
    listed: list[dict[str, Any]] = []
    try:
        if found is not None and error is KafkaError.none:
            listed = found.described(one.resource_name, one.configuration_keys)
    except Refused as wrong:
        error = wrong.error
    return {**_resource(one), "error_code": error, "error_message": None, "configs": listed}


def _altered(
    configs: Mapping[int, Configs], one: Any, asked: Asked, *, is_repeated: bool
) -> dict[str, Any]:
    found, error, message = configs.get(one.resource_type), asked.error, None
    try:
        if is_repeated:
            raise Refused(KafkaError.invalid_request, "a resource is listed twice")
        if found is None:
            raise Refused(KafkaError.invalid_request, "only groups and topics have settings here")
        if error is KafkaError.none:
            found.alter(one, asked)
    except Refused as wrong:
        error, message = wrong.error, str(wrong)
    return {**_resource(one), "error_code": error, "error_message": message}


def _resource(one: Any) -> dict[str, Any]:
    return {"resource_type": one.resource_type, "resource_name": one.resource_name}


def _listed(cluster: Cluster, groups: GroupConfigs, asked: Asked) -> dict[str, Any]:
    """Returns the resources that may have settings; version 0 asks only for client metrics."""
    broker = [str(NODE)]
    names: dict[int, Iterable[str]] = {TOPIC: cluster.topics, _BROKER: broker, _LOGGER: broker}
    names |= {_METRICS: (), GROUP: groups.groups()}
    kinds = getattr(asked.body, "resource_types", (_METRICS,)) or names
    error = asked.error if set(kinds) <= set(names) else KafkaError.unsupported_version
    kinds = kinds if error is KafkaError.none else ()
    found = [{"resource_name": one, "resource_type": kind} for kind in kinds for one in names[kind]]
    return {"error_code": error, "config_resources": found}


def _each(asked: Asked, change: Any) -> list[dict[str, Any]]:
    named = Counter(one.name for one in asked.body.topics)
    if asked.error is not KafkaError.none:
        return [_refused(one, asked.error) for one in asked.body.topics]
    return [
        change(one) if named[one.name] == 1 else _refused(one, KafkaError.invalid_request)
        for one in asked.body.topics
    ]


def _refused(one: Any, error: KafkaError, message: str | None = None) -> dict[str, Any]:
    return {
        "name": one.name,
        "topic_id": None,
        "error_code": error,
        "error_message": message,
        "topic_config_error_code": 0,
        "num_partitions": -1,
        "replication_factor": -1,
        "configs": None,
    }


def _create(cluster: Cluster, one: Any, body: Any) -> dict[str, Any]:
    asks_for = len(one.assignments) or one.num_partitions
    number = 1 if asks_for == _SENDER_CHOOSES else asks_for
    if not is_legal(one.name):
        return _refused(one, KafkaError.invalid_topic_exception)
    if one.name in cluster.topics:
        return _refused(one, KafkaError.topic_already_exists, f"Topic '{one.name}' already exists.")
    if number < 1:
        return _refused(one, KafkaError.invalid_partitions)
    if not one.assignments and one.replication_factor not in (_SENDER_CHOOSES, 1):
        return _refused(one, KafkaError.invalid_replication_factor, "there is one broker")
    if cluster.partitions + number > MOST_PARTITIONS:
        return _refused(one, KafkaError.policy_violation, TOO_MANY)
    configs = TopicConfigs(cluster)
    try:
        settings = changed(configs.settings, {}, {given.name: given.value for given in one.configs})
    except GroupError as wrong:
        return _refused(one, KafkaError.invalid_config, str(wrong))
    answered = {**_refused(one, KafkaError.none), "num_partitions": number, "replication_factor": 1}
    answered["configs"] = configs.listed(settings)
    if not getattr(body, "validate_only", False):
        cluster.add(ServedTopic(one.name, number, settings=settings))
        answered["topic_id"] = cluster.topic_id(one.name)
    return answered


def _grow(cluster: Cluster, one: Any, body: Any) -> dict[str, Any]:
    topic = cluster.topics.get(one.name)
    if topic is None:
        return _refused(one, KafkaError.unknown_topic_or_partition)
    if one.count <= topic.partitions:
        message = f"the topic has {topic.partitions} partitions, {one.count} are not more"
        return _refused(one, KafkaError.invalid_partitions, message)
    if cluster.partitions + one.count - topic.partitions > MOST_PARTITIONS:
        return _refused(one, KafkaError.policy_violation, TOO_MANY)
    if not body.validate_only:
        cluster.grow(one.name, one.count)
    return _refused(one, KafkaError.none)


def _delete(cluster: Cluster, asked: Asked) -> tuple[Mapping[str, Any], list[ClusterTopic]]:
    # Up to version 5, a request contains only names of topics; later, names or ids.
    by_name = getattr(asked.body, "topic_names", None)
    entries = asked.body.topics if by_name is None else by_name
    answers, deleted = [], []
    for one in entries:
        name = one if by_name is not None else one.name
        topic = cluster.topics.get(one) if by_name is not None else cluster.find(one)
        fields = {"name": name, "topic_id": None, "error_code": KafkaError.none}
        if asked.error is not KafkaError.none:
            fields["error_code"] = asked.error
        elif topic is not None:
            fields |= {"name": topic.name, "topic_id": cluster.topic_id(topic.name)}
            deleted.append(cluster.remove(topic.name))
        elif name is not None:
            fields["error_code"] = KafkaError.unknown_topic_or_partition
        else:
            fields |= {"topic_id": one.topic_id, "error_code": KafkaError.unknown_topic_id}
        answers.append({**fields, "error_message": None})
    return {"responses": answers}, deleted
