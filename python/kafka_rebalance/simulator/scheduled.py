# SPDX-License-Identifier: Apache-2.0
"""The events that wait in the simulation's heap, besides `Appended` and `Happening`."""

from dataclasses import dataclass

from kafka_rebalance.coordinator import Appended, PatternsDue
from kafka_rebalance.member import ConfigurationUpdated, Send
from kafka_rebalance.wire.messages import Response

from .scenario import Happening


@dataclass(eq=False, slots=True)
class ProcessEvent:
    """An event of one process; a later `incarnation` of the process ignores it."""

    process: str
    incarnation: int


class Wake(ProcessEvent):
    """A member's deadline is due."""


class PollNow(ProcessEvent):
    """A member's application polls."""


class Refresh(ProcessEvent):
    """A client requests metadata."""


class Returned(ProcessEvent):
    """A callback of an AsyncConsumer returns."""


class Unstuck(ProcessEvent):
    """A pause or a freeze is over."""


@dataclass(eq=False, slots=True)
class Arrive(ProcessEvent):
    """A process's request arrives at a node."""

    send: Send
    number: int


@dataclass(eq=False, slots=True)
class Reply(ProcessEvent):
    """A response arrives at the process."""

    request_id: int
    response: Response


@dataclass(eq=False, slots=True)
class Read(ProcessEvent):
    """A worker has read the configuration topic up to the offset in `news`."""

    news: ConfigurationUpdated


@dataclass(eq=False, slots=True)
class Started(ProcessEvent):
    """A connector that a worker started is running now."""

    connector: str


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A client asks Connect's leader to create or delete connector number `place` of an event."""

    happening: Happening
    place: int = 0

    @property
    def connector(self) -> str:
        return self.happening.connectors[self.place]


class TickNow:
    """A coordinator's deadline is due."""


@dataclass(frozen=True, slots=True)
class Back:
    """A broker returns."""

    happening: Happening


class Loading:
    """Another node has loaded the log and may coordinate."""


ScheduledEvent = (
    ProcessEvent | ClientRequest | TickNow | Loading | Back | Appended | PatternsDue | Happening
)
