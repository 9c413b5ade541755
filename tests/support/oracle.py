# SPDX-License-Identifier: Apache-2.0
"""Runs Kafka's own Java assignors (`tools/oracle`) in a process, for comparison."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from .processes import end_by_closing_stdin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

TOOLS = Path(__file__).resolve().parent.parent.parent / "tools"
JAR = TOOLS / "oracle" / "target" / "oracle.jar"
SERVER_JAR = TOOLS / "server-oracle" / "target" / "server-oracle.jar"
"""The oracle of the assignors that brokers run."""
STREAMS_JAR = TOOLS / "streams-oracle" / "target" / "streams-oracle.jar"
"""The oracle of the leader of classic Kafka Streams groups."""
SHORT_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def missing_java_of_the_judges() -> str | None:
    """Returns what is missing, and how to get it, to judge brokers and Connect; or None.

    The assignors of brokers and Connect copy sets; from JDK 19 on, a copied set has another size,
    so another order.
    """
    if shutil.which("java") is None:
        return "no `java` on PATH: install a Java runtime, 17 or 18"
    version = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)
    if re.search(r'version "1[78]\b', version.stderr):
        return None
    return "`java` is not 17 or 18, on which brokers and Connect are judged: install one of them"


class OracleError(Exception):
    """The oracle is missing, has ended, or could not read a line."""


class Oracle:
    """A process with Kafka's classes. Only one thread may use it.

    Read all answers of `ask_many` before the next call.

    >>> with Oracle() as oracle:  # doctest: +SKIP
    ...     oracle.ask({"assignor": "range", "topics": [], "members": []})
    {'assignment': {}}
    """

    def __init__(self, jar: Path = JAR) -> None:
        if not jar.is_file():
            raise OracleError(f"{jar} is missing: run `make judges`")
        java = shutil.which("java")
        if java is None:
            raise OracleError("no `java` on the path: the oracle needs Java 17 or newer")
        self._process = subprocess.Popen(
            # These processes are short: the second compiler would cost more than it saves. With
            # -OmitStackTraceInFastThrow, exceptions of compiled methods keep their message.
            [java, *SHORT_JVM, "-XX:-OmitStackTraceInFastThrow", "-jar", str(jar)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def ask(self, line: dict[str, Any]) -> dict[str, Any]:
        """Returns the answer to one line: an assignment, an error, or encoded or decoded bytes."""
        return self.ask_together([line])[0]

    def ask_together(self, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Sends all lines, then reads all answers. The lines must fit into a pipe (64 kB)."""
        try:
            self._stdin.write("".join(map(_dump, lines)))
            self._stdin.flush()
        except BrokenPipeError:
            raise self._death() from None
        return [self._read(line) for line in lines]

    def ask_many(self, lines: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yields the answers to many lines, in order. Reads all lines before it sends the first."""
        asked = list(lines)
        # A pipe holds little data, so another thread must write while this thread reads.
        writer = threading.Thread(target=self._write_all, args=(asked,), daemon=True)
        writer.start()
        for line in asked:
            yield self._read(line)
        writer.join()

    def close(self) -> None:
        """Ends the oracle and waits for it; a second call does nothing."""
        end_by_closing_stdin(self._process)

    def _write_all(self, lines: list[dict[str, Any]]) -> None:
        # If the oracle has ended, the reading thread raises the error.
        with contextlib.suppress(BrokenPipeError, ValueError):
            for line in lines:
                self._stdin.write(_dump(line))
            self._stdin.flush()

    def _read(self, line: dict[str, Any]) -> dict[str, Any]:
        text = self._stdout.readline()
        if not text:
            raise self._death()
        answer: dict[str, Any] = json.loads(text)
        if "oracle_error" in answer:
            raise OracleError(f"{answer['oracle_error']}: {_dump(line)[:500].rstrip()}")
        return answer

    def _death(self) -> OracleError:
        return OracleError(f"the oracle ended with exit code {self._process.wait()}")


def ask_once(line: dict[str, Any], *, within_s: float) -> dict[str, Any] | None:
    """Asks a new oracle one line; kills it and returns None if it does not answer in time."""
    command = ["java", *SHORT_JVM, "-jar", str(JAR)]
    try:
        run = subprocess.run(
            command,
            input=_dump(line).encode(),
            capture_output=True,
            timeout=within_s,
            check=True,
        )
    except subprocess.TimeoutExpired:
        return None
    answer: dict[str, Any] = json.loads(run.stdout)
    return answer


def _dump(line: dict[str, Any]) -> str:
    return json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n"
