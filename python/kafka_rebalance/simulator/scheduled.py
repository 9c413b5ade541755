# SPDX-License-Identifier: Apache-2.0
"""What the simulation's heap holds: plain events, each at its time.

    Arrive   a request comes to a node            Reply    a response comes to a process
    Wake     a member's deadline                  PollNow  its application polls
    TickNow  a deadline of the coordinator        Loading  another node has loaded the log
    Refresh  a client asks for metadata           Unstuck  a pause is over
    Back     a broker is back
    Read     a worker reads the configuration     Started  a connector runs
    Request  a client asks Connect's leader

`Appended` (the log has taken an append) and `Happening` (the scenario's) are events as they are.
"""

from dataclasses import dataclass

from kafka_rebalance.coordinator import Appended
from kafka_rebalance.member import ConfigurationUpdated, Send
from kafka_rebalance.protocol import Response

from .scenario import Happening


@dataclass(frozen=True, slots=True)
class Arrive:
    """A request of a process comes to a node."""

    process: str
    incarnation: int
    send: Send
    number: int


@dataclass(frozen=True, slots=True)
class Reply:
    """A response comes back."""

    process: str
    incarnation: int
    request_id: int
    response: Response


@dataclass(frozen=True, slots=True)
class Wake:
    """A deadline of a member."""

    process: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class PollNow:
    """The application polls."""

    process: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class Refresh:
    """The client fetches metadata."""

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
    """A connector that a worker started runs."""

    process: str
    incarnation: int
    connector: str


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A client asks Connect's leader for the connector at this place of a happening."""

    happening: Happening
    place: int = 0

    @property
    def connector(self) -> str:
        """Which one."""
        return self.happening.connectors[self.place]


@dataclass(frozen=True, slots=True)
class TickNow:
    """A deadline of the coordinator."""


@dataclass(frozen=True, slots=True)
class Back:
    """A broker that was away is back."""

    happening: Happening


@dataclass(frozen=True, slots=True)
class Loading:
    """Another node takes the coordinator's place."""


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
