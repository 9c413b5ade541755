# SPDX-License-Identifier: Apache-2.0
"""Connect's configuration topic: what should run, and how far it has been written.

A connector comes without tasks; the worker that runs it writes their configurations once it has
started. A deletion takes both.

Source   KafkaConfigBackingStore (Connect 4.3.1): a connector is a record; its tasks are a record
         each and one that commits them; a deletion is two tombstones.
"""

from collections.abc import Mapping

from kafka_rebalance.member import ConfigurationUpdated


class ConfigTopic:
    """Getters: connectors, newest. Inputs: create, configure_tasks, delete."""

    def __init__(self, connectors: Mapping[str, int]) -> None:
        self.offset = 0
        self.connectors: dict[str, int] = {}
        for name, tasks in connectors.items():
            self.create(name)
            self.configure_tasks(name, tasks)

    def newest(self) -> ConfigurationUpdated:
        """What a worker reads that reads it to its end."""
        return ConfigurationUpdated(self.offset, tuple(self.connectors.items()))

    def create(self, name: str) -> None:
        """A connector; one that is there already is only written anew."""
        self.offset += 1
        self.connectors.setdefault(name, 0)

    def configure_tasks(self, name: str, tasks: int) -> bool:
        """A connector's tasks; whether that was news."""
        if self.connectors.get(name) in (None, tasks):
            return False
        self.offset += tasks + 1
        self.connectors[name] = tasks
        return True

    def delete(self, name: str) -> int:
        """A connector and its tasks; how many those were."""
        self.offset += 2
        return self.connectors.pop(name, 0)
