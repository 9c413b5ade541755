# SPDX-License-Identifier: Apache-2.0
"""Connect's configuration topic: the connectors and tasks that should run, and its end offset.

A connector is created without tasks; the worker that runs the connector writes the configurations
of its tasks once the connector has started. A deletion removes the connector and its tasks.

Source   KafkaConfigBackingStore (Connect 4.3.1): a connector is one record. Each of its tasks is a
         record, and one more record commits the tasks. A deletion is two tombstones.
"""

from collections.abc import Mapping

from kafka_rebalance.member import ConfigurationUpdated


class ConfigTopic:
    """The topic. `connectors` and `newest` show its contents; the other methods write to it."""

    def __init__(self, connectors: Mapping[str, int]) -> None:
        self.offset = 0
        self.connectors: dict[str, int] = {}
        for name, tasks in connectors.items():
            self.create(name)
            self.configure_tasks(name, tasks)

    def newest(self) -> ConfigurationUpdated:
        """Returns the event for a worker that has read the topic to its end."""
        return ConfigurationUpdated(self.offset, tuple(self.connectors.items()))

    def create(self, name: str) -> None:
        """Creates a connector without tasks; an existing connector keeps its tasks."""
        self.offset += 1
        self.connectors.setdefault(name, 0)

    def configure_tasks(self, name: str, tasks: int) -> bool:
        """Sets a connector's number of tasks; returns whether that number has changed."""
        if self.connectors.get(name) in (None, tasks):
            return False
        self.offset += tasks + 1
        self.connectors[name] = tasks
        return True

    def delete(self, name: str) -> int:
        """Deletes a connector and its tasks; returns the number of tasks."""
        self.offset += 2
        return self.connectors.pop(name, 0)
