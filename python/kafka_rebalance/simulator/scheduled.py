# SPDX-License-Identifier: Apache-2.0
"""The events in the simulation's heap.

    Arrive   a request arrives at a node          Reply    a response arrives at a process
    Wake     a member's deadline is due           PollNow  an application polls
    TickNow  a coordinator's deadline is due      Loading  another node has loaded the log
    Refresh  a client asks for metadata           Unstuck  a pause or a freeze is over
    Read     a worker reads the configuration     Started  a connector runs
    Back     a broker is back                     ClientRequest  a client asks Connect's leader

`Appended` (an append is durable) and `Happening` (the scenario's events) are in the heap too.
"""

from dataclasses import dataclass

from kafka_rebalance.coordinator import Appended
from kafka_rebalance.member import ConfigurationUpdated, Send
from kafka_rebalance.protocol import Response

from .scenario import Happening


@dataclass(frozen=True, slots=True)
class Arrive:
    """A process's request arrives at a node."""

    process: str
    incarnation: int
    send: Send
    number: int


@dataclass(frozen=True, slots=True)
class Reply:
    """A response arrives at the process."""

    process: str
    incarnation: int
    request_id: int
    response: Response


@dataclass(frozen=True, slots=True)
class Wake:
    """A member's deadline is due."""

    process: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class PollNow:
    """A member's application polls."""

    process: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class Refresh:
    """A client asks for metadata."""

    process: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class Unstuck:
    """A pause or a freeze is over."""

    process: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class Read:
    """A worker has read the configuration topic up to here."""

    process: str
    incarnation: int
    news: ConfigurationUpdated


@dataclass(frozen=True, slots=True)
class Started:
    """A connector that a worker started is running now."""

    process: str
    incarnation: int
    connector: str


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A client asks Connect's leader to create or delete a connector, one of a happening."""

    happening: Happening
    place: int = 0

    @property
    def connector(self) -> str:
        """The name of the connector."""
        return self.happening.connectors[self.place]


@dataclass(frozen=True, slots=True)
class TickNow:
    """A coordinator's deadline is due."""


@dataclass(frozen=True, slots=True)
class Back:
    """A broker that was away is back."""

    happening: Happening


@dataclass(frozen=True, slots=True)
class Loading:
    """Another node has loaded the log and may coordinate."""


ScheduledEvent = (
    Arrive
    | Reply
    | Wake
    | PollNow
    | Refresh
    | Unstuck
    | Read
    | Started
    | ClientRequest
    | TickNow
    | Loading
    | Back
    | Appended
    | Happening
)
