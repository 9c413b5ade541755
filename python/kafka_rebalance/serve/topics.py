# SPDX-License-Identifier: Apache-2.0
"""Answers requests to the controller: create, grow and delete topics, read and set configs."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kafka_rebalance.coordinator.machine.events import ClusterTopic
from kafka_rebalance.errors import GroupError

from .batches import Refused
from .cluster import MOST_PARTITIONS, NODE, TOO_MANY, Cluster, ServedTopic, is_legal
from .configs import GROUP, Configs, GroupConfigs, changed
from .frames import Asked, KafkaError
from .topic_configs import TOPIC, TopicConfigs

_SENDER_CHOOSES = -1
_BROKER, _LOGGER, _METRICS = 4, 8, 16
"""The numbers of the other types of resources in DescribeConfigs."""


class Controller:
    """Changes the topics of a cluster; `deleted` is called with each list of deleted topics."""

    def __init__(
        self, cluster: Cluster, groups: GroupConfigs, deleted: Callable[[list[ClusterTopic]], None]
    ) -> None:
        self._cluster, self._groups, self._deleted = cluster, groups, deleted
        self._configs: Mapping[int, Configs] = {TOPIC: TopicConfigs(cluster), GROUP: groups}
        self.answers: Mapping[str, Callable[[Asked], Mapping[str, Any]]] = {
            "create_topics": lambda asked: {"topics": self._each(asked, self._create)},
            "create_partitions": lambda asked: {"results": self._each(asked, self._grow)},
            "delete_topics": self._delete,
            "describe_configs": self._describe,
            "alter_configs": self._alter,
            "incremental_alter_configs": self._alter,
            "list_config_resources": self._list,
        }

    # Topics ---------------------------------------------------------------------------------------

    def _each(
        self, asked: Asked, change: Callable[[Any, Any], Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """Returns the result of `change` for each topic; one that is listed twice is refused."""
        topics, found = asked.body.topics, []
        named = Counter(one.name for one in topics)
        for one in topics:
            try:
                if asked.error or named[one.name] > 1:
                    raise Refused(asked.error or KafkaError.invalid_request)
                found.append({"name": one.name, **change(one, asked.body)})
            except Refused as wrong:
                refused = {"error_code": wrong.error, "error_message": wrong.message}
                found.append({"name": one.name, **refused})
        return found

    def _create(self, one: Any, body: Any) -> dict[str, Any]:
        cluster, configs = self._cluster, self._configs[TOPIC]
        asks_for = len(one.assignments) or one.num_partitions
        number = 1 if asks_for == _SENDER_CHOOSES else asks_for
        if not is_legal(one.name):
            raise Refused(KafkaError.invalid_topic_exception)
        if one.name in cluster.topics:
            raise Refused(KafkaError.topic_already_exists, f"Topic '{one.name}' already exists.")
        if number < 1:
            raise Refused(KafkaError.invalid_partitions)
        if not one.assignments and one.replication_factor not in (_SENDER_CHOOSES, 1):
            raise Refused(KafkaError.invalid_replication_factor, "there is one broker")
        if cluster.partitions + number > MOST_PARTITIONS:
            raise Refused(KafkaError.policy_violation, TOO_MANY)
        given = {config.name: config.value for config in one.configs}
        try:
            settings = changed(configs.settings, {}, given)
        except GroupError as wrong:
            raise Refused(KafkaError.invalid_config, str(wrong)) from None
        topic_id = None
        if not getattr(body, "validate_only", False):
            cluster.add(ServedTopic(one.name, number, settings=settings))
            topic_id = cluster.topic_id(one.name)
        made = {"topic_id": topic_id, "num_partitions": number, "replication_factor": 1}
        return {**made, "configs": configs.listed(settings)}

    def _grow(self, one: Any, body: Any) -> dict[str, Any]:
        topic = self._cluster.topics.get(one.name)
        if topic is None:
            raise Refused(KafkaError.unknown_topic_or_partition)
        if one.count <= topic.partitions:
            message = f"the topic has {topic.partitions} partitions, {one.count} are not more"
            raise Refused(KafkaError.invalid_partitions, message)
        if self._cluster.partitions + one.count - topic.partitions > MOST_PARTITIONS:
            raise Refused(KafkaError.policy_violation, TOO_MANY)
        if not body.validate_only:
            self._cluster.grow(one.name, one.count)
        return {}

    def _delete(self, asked: Asked) -> dict[str, Any]:
        # Up to version 5, a request has only names of topics; later, names or ids.
        cluster, by_name = self._cluster, getattr(asked.body, "topic_names", None)
        answers: list[dict[str, Any]] = []
        deleted = []
        for one in asked.body.topics if by_name is None else by_name:
            name = one if by_name is not None else one.name
            topic = cluster.topics.get(one) if by_name is not None else cluster.find(one)
            if topic is not None and not asked.error:
                answers.append({"name": topic.name, "topic_id": cluster.topic_id(topic.name)})
                deleted.append(cluster.remove(topic.name))
            elif name is not None or asked.error:
                unknown = KafkaError.unknown_topic_or_partition
                answers.append({"name": name, "error_code": asked.error or unknown})
            else:
                unknown = KafkaError.unknown_topic_id
                answers.append({"topic_id": one.topic_id, "error_code": unknown})
        if deleted:
            self._deleted(deleted)
        return {"responses": answers}

    # Settings -------------------------------------------------------------------------------------

    def _describe(self, asked: Asked) -> dict[str, Any]:
        """Returns resources' settings; brokers have none, because they all have the defaults."""
        results = []
        for one in asked.body.resources:
            fields = {**_resource(one), "error_code": asked.error}
            configs = None if asked.error else self._configs.get(one.resource_type)
            try:
                if configs is not None:
                    keys = one.configuration_keys
                    fields["configs"] = configs.described(one.resource_name, keys)
            except Refused as wrong:
                fields["error_code"] = wrong.error
            results.append(fields)
        return {"results": results}

    def _alter(self, asked: Asked) -> dict[str, Any]:
        named = Counter((one.resource_type, one.resource_name) for one in asked.body.resources)
        responses = []
        for one in asked.body.resources:
            fields = {**_resource(one), "error_code": asked.error}
            configs, wrong = self._configs.get(one.resource_type), KafkaError.invalid_request
            try:
                if named[one.resource_type, one.resource_name] > 1:
                    raise Refused(wrong, "a resource is listed twice")
                if configs is None:
                    raise Refused(wrong, "only groups and topics have settings here")
                if not asked.error:
                    configs.alter(one, asked)
            except Refused as refused:
                fields |= {"error_code": refused.error, "error_message": str(refused)}
            responses.append(fields)
        return {"responses": responses}

    def _list(self, asked: Asked) -> dict[str, Any]:
        """Returns the resources that may have settings; version 0 asks only for client metrics."""
        broker, topics = [str(NODE)], self._cluster.topics
        names: dict[int, Iterable[str]] = {TOPIC: topics, _BROKER: broker, _LOGGER: broker}
        names |= {_METRICS: (), GROUP: self._groups.groups()}
        kinds = getattr(asked.body, "resource_types", (_METRICS,)) or names
        error = asked.error if set(kinds) <= set(names) else KafkaError.unsupported_version
        kinds = () if error else kinds
        found = [(kind, name) for kind in kinds for name in names[kind]]
        listed = [{"resource_type": kind, "resource_name": name} for kind, name in found]
        return {"error_code": error, "config_resources": listed}


def _resource(one: Any) -> dict[str, Any]:
    return {"resource_type": one.resource_type, "resource_name": one.resource_name}
