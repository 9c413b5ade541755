# SPDX-License-Identifier: Apache-2.0
"""Finds ports for servers that are told their port before they start."""

from __future__ import annotations

import random
import socket

_GIVEN_TO_NOBODY = range(15_000, 30_000)
"""No system gives these to a connection or to a socket without a port (Linux begins at 32768), so
none is taken between the search and the server's start."""


def free_ports(count: int) -> list[int]:
    """Returns different ports of 127.0.0.1 on which nobody listens, in random order."""
    found: list[int] = []
    for port in random.SystemRandom().sample(_GIVEN_TO_NOBODY, len(_GIVEN_TO_NOBODY)):
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError(f"{count} ports: only {len(found)} are free")
