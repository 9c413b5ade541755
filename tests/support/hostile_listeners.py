# SPDX-License-Identifier: Apache-2.0
"""Listeners that never answer as Kafka or Connect do, and the commands that meet them.

    python -m tests.support.hostile_listeners [NAME ...]

runs each live command against each listener, and prints one JSON line for each pair: its exit code,
its seconds, and its output.

silent    accepts, and sends nothing: with TLS not even its part of the handshake
garbage   answers the first bytes with random bytes
slow      begins an answer, and sends one byte of it in a tenth of a second
dying     ends each connection after the first bytes
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kafka_rebalance.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_S = 0.3
_BYTE_S = 0.1

_CHANGE = ("--group", "g", "--add-members", "1")
_BROKER_COMMANDS = {
    "snapshot": (),
    "snapshot --leaders": ("--leaders",),
    "describe": (),
    "describe --group": ("--group", "g"),
    "plan": _CHANGE,
    "compare": ("--group", "g"),
    "explain": ("t-0", "--group", "g"),
    "simulate": ("--group", "g"),
    "history": (),
    "watch": ("--group", "g", "--for", "2"),
}


def broker_commands() -> dict[str, list[str]]:
    """Returns the words of each command that reads a broker, without the broker."""
    return {name: [name.split()[0], *more] for name, more in _BROKER_COMMANDS.items()}


class Listener(NamedTuple):
    """One kind of listener."""

    kind: str
    answers: str
    has_tls: bool

    @property
    def name(self) -> str:
        return f"{self.answers}-{self.kind}" + "-tls" * self.has_tls

    def commands(self, port: int, config: Path) -> Iterator[tuple[str, list[str]]]:
        """Yields the commands that connect to such a listener, by name."""
        more = ["--command-config", str(config), "--timeout", str(TIMEOUT_S)]
        if self.answers == "connect":
            url = f"http{'s' * self.has_tls}://127.0.0.1:{port}"
            yield "connect --url", ["connect", "--url", url, *more]
            return
        for name, words in broker_commands().items():
            yield name, [*words, "--bootstrap-server", f"127.0.0.1:{port}", *more]


LISTENERS = {
    one.name: one
    for one in itertools.starmap(
        Listener,
        itertools.product(
            ("silent", "garbage", "slow", "dying"), ("broker", "connect"), (False, True)
        ),
    )
}


class Ended(NamedTuple):
    """The end of a command: its exit code, time and output."""

    command: str
    code: int
    seconds: float
    out: str
    err: str


def ended(listener: Listener) -> Iterator[Ended]:
    """Runs each command against the listener."""
    with (
        tempfile.TemporaryDirectory() as directory,
        socket.create_server(("127.0.0.1", 0), backlog=50) as server,
    ):
        context = _context(Path(directory)) if listener.has_tls else None
        threading.Thread(target=_serve, args=(listener, server, context), daemon=True).start()
        config = Path(directory) / "client.properties"
        if listener.has_tls:
            trust = f"ssl.truststore.location={directory}/cert.pem\n"
            config.write_text(f"security.protocol=SSL\n{trust}")
        else:
            config.touch()
        for name, arguments in listener.commands(server.getsockname()[1], config):
            out, err = io.StringIO(), io.StringIO()
            began_s = time.monotonic()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main(arguments)
            seconds = time.monotonic() - began_s
            yield Ended(name, code, round(seconds, 2), out.getvalue(), err.getvalue())


def _context(directory: Path) -> ssl.SSLContext:
    key, certificate = directory / "key.pem", directory / "cert.pem"
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
    made += "-subj /CN=h -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(
        ["openssl", *made.split(), "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def _serve(listener: Listener, server: socket.socket, context: ssl.SSLContext | None) -> None:
    kept = []
    with contextlib.suppress(OSError):  # the server is closed
        while True:
            connection, _ = server.accept()
            kept.append(connection)
            threading.Thread(
                target=_answer, args=(listener, connection, context), daemon=True
            ).start()


def _answer(listener: Listener, plain: socket.socket, context: ssl.SSLContext | None) -> None:
    if listener.kind == "silent":
        return
    with contextlib.suppress(OSError):  # the client has gone
        one = context.wrap_socket(plain, server_side=True) if context else plain
        asked = one.recv(4096)
        if listener.kind == "garbage":
            one.sendall(os.urandom(5000))
            return
        if listener.kind == "slow":
            if listener.answers == "connect":
                one.sendall(b"HTTP/1.1 200 OK\r\n\r\n[")
            else:  # the size of the answer, and the id of the request
                one.sendall(struct.pack(">i", 1000) + asked[8:12])
            while True:
                one.sendall(b" ")
                time.sleep(_BYTE_S)
        one.close()


if __name__ == "__main__":
    for name in sys.argv[1:] or LISTENERS:
        for result in ended(LISTENERS[name]):
            print(json.dumps({"listener": name, **result._asdict()}), flush=True)
