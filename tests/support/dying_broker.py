# SPDX-License-Identifier: Apache-2.0
"""A broker that dies in the middle of a command, after each number of its answers.

    python -m tests.support.dying_broker [COMMAND ...]

`serve` is the broker; it advertises the port of a proxy, which counts answers. Then the broker is

gone      its connections end, and later ones are refused
silent    its connections stay, and later ones are accepted; no answer comes

Each run is printed as a JSON line: the command, how and after how many answers the broker died, the
exit code, the seconds, and what the command wrote.
"""

from __future__ import annotations

import contextlib
import io
import json
import socket
import struct
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from kafka_rebalance.cli import main
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.testing import RunningBroker
from kafka_rebalance.wire import consumer_protocol as wire
from tests.support.hostile_listeners import broker_commands
from tests.support.live_members import join_by_hand

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUP = "g"
WAYS = ("gone", "silent")
TIMEOUT_S = 0.8
_MOST_ANSWERS = 60


class Proxy:
    """Forwards connections to a port until `answers` answers have passed."""

    def __init__(self, host: str, port: int, answers: int, way: str) -> None:
        self._upstream, self._left, self._way = (host, port), answers, way
        self._lock = threading.Lock()
        self._server = socket.create_server(("127.0.0.1", 0), backlog=50)
        self._open: list[socket.socket] = []
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the connection is closed
            while True:
                client, _ = self._server.accept()
                broker = socket.create_connection(self._upstream)
                self._open += [client, broker]
                threading.Thread(target=_requests, args=(client, broker), daemon=True).start()
                threading.Thread(target=self._answers, args=(broker, client), daemon=True).start()

    def _answers(self, broker: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError), broker.makefile("rb") as read:
            while start := read.read(4):
                frame = start + read.read(*struct.unpack(">i", start))
                with self._lock:
                    self._left -= 1
                    if self._left < 0:
                        if self._way == "gone":
                            self.close()
                        return
                    client.sendall(frame)

    def close(self) -> None:
        """Ends all connections, and refuses later ones."""
        for one in (self._server, *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def _requests(client: socket.socket, broker: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := client.recv(65536):
            broker.sendall(data)
        broker.close()


@contextlib.contextmanager
def served_group() -> Iterator[RunningBroker]:
    """Yields a broker with a group of one member."""
    with RunningBroker({"t": 6, "__consumer_offsets": 4}) as broker:
        subscription = wire.encode_subscription(wire.Subscription(("t",)))
        owned = tuple(TopicPartition("t", n) for n in range(6))
        given = wire.encode_assignment(wire.AssignmentData(owned))
        join_by_hand(broker.address, GROUP, subscription, assignment=given)
        yield broker


def runs(words: list[str], way: str, every: int = 1) -> Iterator[dict[str, Any]]:
    """Runs a command with more and more answers, until it ends as if the broker never died."""
    with served_group() as broker:
        host, _, port = broker.address.partition(":")
        for answers in range(0, _MOST_ANSWERS, every):
            proxy = Proxy(host, int(port), answers, way)
            broker._server.cluster.port = proxy.port
            out, err = io.StringIO(), io.StringIO()
            server = ["--bootstrap-server", f"127.0.0.1:{proxy.port}"]
            began_s = time.monotonic()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main([*words, *server, "--timeout", str(TIMEOUT_S)])
            seconds = round(time.monotonic() - began_s, 2)
            is_over = proxy._left >= 0
            proxy.close()
            yield {
                "command": " ".join(words),
                "way": way,
                "answers": answers,
                "is_over": is_over,
                "code": code,
                "seconds": seconds,
                "out": out.getvalue(),
                "err": err.getvalue(),
            }
            if is_over:
                return


if __name__ == "__main__":
    for name, words in broker_commands().items():
        for way in WAYS:
            if not sys.argv[1:] or name in sys.argv[1:]:
                for one in runs(words, way):
                    print(json.dumps(one), flush=True)
