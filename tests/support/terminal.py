# SPDX-License-Identifier: Apache-2.0
"""A terminal of a given width, for the output of a process."""

from __future__ import annotations

import fcntl
import os
import struct
import termios


def open_terminal(columns: int) -> tuple[int, int]:
    """Returns the file descriptors of the reader's end and of the process's end."""
    reader, end = os.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    return reader, end


def read_terminal(reader: int) -> str:
    """Returns the text that was written until all processes closed their end; closes the reader."""
    found = bytearray()
    while True:
        try:
            piece = os.read(reader, 65536)
        except OSError:  # no process holds the other end any longer
            break
        if not piece:
            break
        found += piece
    os.close(reader)
    return found.decode().replace("\r\n", "\n")
