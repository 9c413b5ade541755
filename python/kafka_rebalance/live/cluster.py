# SPDX-License-Identifier: Apache-2.0
"""Connects kafka-python's clients to a cluster, or reports why this is not possible.

kafka-python tries to connect until its timeout, and drops the reasons why attempts failed. This
module keeps the last reason, makes no further attempt if it would fail for the same reason, and
removes secrets from the debug log. The caller's wait ends when no broker has answered for the
client's `request_timeout_ms`. kafka-python itself has no deadline for a TLS handshake, and begins a
new deadline with each attempt.
"""

import atexit
import importlib
import logging
import os
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from kafka_rebalance.errors import ClusterError, GroupError, MissingExtra, NotReachedError
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.model import quoted

from .log_records import masked
from .raw_requests import may_pass
from .tls import tls_problem

_ATTEMPTS = 3
"""After the broker has closed this many connections without an answer, no further one is tried.

With several addresses, one attempt may take only this fraction (1/3) of the whole time, so that the
next address is tried, too.
"""

_ENDED = "socket disconnected"

_PAUSE_S = 1.0
"""A request that begins at most this many seconds after a failed request counts as another attempt
at that request, with the same deadline.
"""

_STOP_MS = 500
"""The ms to wait for the client's thread, which may be in a look-up without a time limit."""

_LOGGERS = ("kafka.admin.client", "kafka.net.connection", "kafka.protocol.parser")
_ERRNO = re.compile(r"(\d+) E[A-Z]+")
_BEARER = re.compile(r"(auth=Bearer )[\w.~+/=-]+")
_SECRETS = ("sasl_plain_password", "ssl_password")


def kafka_module() -> Any:
    """Returns kafka-python; raises MissingExtra if it is absent or older than version 3."""
    try:
        kafka = importlib.import_module("kafka")
    except ImportError as error:
        raise MissingExtra("reading a live cluster", "kafka") from error
    if int(str(kafka.__version__).partition(".")[0]) < 3:
        raise MissingExtra(f"reading a live cluster (kafka-python is {kafka.__version__})", "kafka")
    return kafka


@contextmanager
def admin_client(bootstrap_server: str, configs: Mapping[str, Any] | None) -> Iterator[Any]:
    """Yields a KafkaAdminClient that is connected. Errors of the client become ClusterError.

    An error that may pass, such as a lost connection, becomes NotReachedError.

    `bootstrap_server` is "host:port", or several separated by commas; `configs` are settings of
    KafkaAdminClient, made by `client_configs`. Errors: GroupError at `bootstrap_server` for a wrong
    port; TypeError if `bootstrap_server` is not a string.
    """
    with _connected("KafkaAdminClient", bootstrap_server, configs) as admin:
        yield admin


@contextmanager
def consumer_client(bootstrap_server: str, configs: Mapping[str, Any] | None) -> Iterator[Any]:
    """Yields a KafkaConsumer without a group. Arguments and errors are those of `admin_client`."""
    milliseconds = (configs or {}).get("request_timeout_ms", 30_000)
    alone = {
        "group_id": None,
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
        "allow_auto_create_topics": False,
        "fetch_max_wait_ms": min(500, milliseconds // 2),
    }
    with _connected("KafkaConsumer", bootstrap_server, {**(configs or {}), **alone}) as consumer:
        yield consumer


@contextmanager
def _connected(
    kind: str, bootstrap_server: str, configs: Mapping[str, Any] | None
) -> Iterator[Any]:
    kafka = kafka_module()
    errors: Any = importlib.import_module("kafka.errors")
    settings = {"bootstrap_servers": _servers(bootstrap_server), **(configs or {})}
    watched = _Connections(errors, settings)
    hidden = _WithoutSecrets([str(settings[name]) for name in _SECRETS if settings.get(name)])
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(hidden)
    closing = ExitStack()

    def close() -> None:
        with suppress(Exception):  # a signal may have interrupted a request
            closing.close()

    # If the caller does not read the generator to its end, the client is closed when Python begins
    # to exit. Later, its thread has ended, and close() would fail.
    atexit.register(close)
    try:
        with closing:
            yield closing.enter_context(
                getattr(kafka, kind)(**settings, kafka_client=watched.client)
            )
    except (errors.KafkaError, OSError, ValueError) as error:
        # kafka-python raises ValueError for an address, a proxy or a SASL answer it cannot read.
        problem = hidden.without(watched.problem(error))
        text = f"{bootstrap_server}: {problem}"
        if not watched.may_pass(error):
            raise ClusterError(text) from None
        raise NotReachedError(text, none_answered=not watched.has_begun) from None
    finally:
        atexit.unregister(close)
        watched.stop()
        for logger in loggers:
            logger.removeFilter(hidden)


def _servers(bootstrap_server: str) -> list[str]:
    """Returns the addresses. Errors: GroupError for a wrong port, TypeError for a wrong type."""
    if not isinstance(bootstrap_server, str):
        problem = f"{a_type(bootstrap_server)} is not a text, as localhost:9092"
        raise TypeError(f"bootstrap_server: {problem}")
    servers = [server.strip() for server in bootstrap_server.split(",")]
    for server in servers:
        found = _PORT.search(server)
        port = found[1] if found else "9092"
        if not (port.isascii() and port.isdigit() and 0 < int(port[:6]) <= _LAST_PORT):
            problem = f"{quoted(port)} is not a port from 1 to {_LAST_PORT}"
            raise GroupError("bootstrap_server", f"{quoted(server)}: {problem}")
    return servers


_PORT = re.compile(r"^(?:[^:]*|.*\]):([^:\]]*)$")
"""Finds the port: it stands after the only colon, or after the bracket of an IPv6 address."""

_LAST_PORT = 2**16 - 1


class _Silence:
    """Runs a client's requests; raises `too_late` if no broker answers for `most_s` seconds."""

    def __init__(self, net: Any, too_late: type[Exception], most_s: float) -> None:
        self._net, self._too_late, self._most_s = net, too_late, most_s
        self._since_s = self._ended_s = -_PAUSE_S

    def heard(self) -> None:
        self._since_s = time.monotonic()

    def run(self, call: Any, *arguments: Any) -> Any:
        """Runs a coroutine in the client's thread and returns its value, as `net.run` does."""
        if time.monotonic() - self._ended_s > _PAUSE_S:
            self.heard()
        done = threading.Event()
        future = self._net.call_soon_with_future(call, *arguments)
        future.add_both(lambda _: done.set())
        while not done.wait(left_s := max(0.0, self._since_s + self._most_s - time.monotonic())):
            if not left_s:
                self._ended_s = -_PAUSE_S  # the next request has its own deadline
                raise self._too_late
        self._ended_s = time.monotonic()
        if future.exception is not None:
            raise future.exception
        self.heard()
        return future.value


class _Connections:
    """Watches the connections of one client, and keeps the reason for the last failure."""

    def __init__(self, errors: Any, settings: Mapping[str, Any]) -> None:
        self._errors, self._settings = errors, settings
        self._last: tuple[str, BaseException] | None = None  # an address, and its last failure
        self._ended = 0
        self._client: Any = None

    def client(self, **configs: Any) -> Any:
        """Returns kafka-python's network client; its failed connections are recorded here."""
        self._client = importlib.import_module("kafka.net.compat").KafkaNetClient(**configs)
        manager = self._client._manager
        connect = manager.get_connection
        most_ms = self._settings.get("bootstrap_timeout_ms", 30_000)
        if len(self._settings["bootstrap_servers"]) > 1:
            most_ms /= _ATTEMPTS
        net, too_late = self._client._net, self._errors.KafkaTimeoutError
        silence = _Silence(net, too_late, self._settings.get("request_timeout_ms", 30_000) / 1000)
        net.run = silence.run

        final: dict[Any, BaseException] = {}

        def get_connection(node_id: Any, timeout_ms: float | None = None, **named: Any) -> Any:
            if node_id in final:
                raise final[node_id]  # no further attempt
            timeout_ms = min(most_ms, timeout_ms or most_ms)
            connection = connect(node_id, timeout_ms=timeout_ms, **named)
            if not connection.init_future.is_done:
                for future in (connection.init_future, connection.close_future):
                    future.add_errback(failed, node_id)
                connection.connection_made = _last_answers(connection.connection_made)
                connection.data_received = _noted(connection, silence.heard)
                net.call_later(timeout_ms / 1000, lambda: give_up(connection))
            return connection

        def give_up(connection: Any) -> None:
            if not connection.init_future.is_done:
                connection.close(too_late())

        def failed(node_id: Any, error: BaseException) -> None:
            if self._last is not None and self._last[1] is error:
                return  # recorded already, by the connection's other future
            if type(error) is self._errors.KafkaConnectionError and not error.args:
                return  # the client closed the connection
            node = manager.cluster.broker_metadata(node_id)
            address = f"{node.host}:{node.port}" if node else str(node_id)
            self._last = address, error
            self._ended += _ENDED in str(error)
            if self._is_final(error) or self._ended == _ATTEMPTS:
                final[node_id] = error

        manager.get_connection = get_connection
        return self._client

    @property
    def has_begun(self) -> bool:
        """Returns whether a bootstrap server has answered with the cluster's metadata."""
        return self._client is not None and bool(self._client._manager.bootstrapped)

    def stop(self) -> None:
        """Stops the client's thread, which kafka-python leaves running if it cannot connect."""
        if self._client is not None:
            thread = self._client._net._io_thread
            self._client._net.stop(timeout_ms=_STOP_MS)
            if thread is None or not thread.is_alive():
                self._client.close()

    def _is_final(self, error: BaseException) -> bool:
        """Returns whether every retry would fail with this error."""
        errors = self._errors
        final = (
            errors.SaslAuthenticationFailedError,
            errors.UnsupportedSaslMechanismError,
            errors.IllegalSaslStateError,
            errors.AuthorizationError,
            errors.InvalidReceiveError,
            ClusterError,
        )
        return isinstance(error, final) or _tls_error(error) is not None

    def may_pass(self, error: Exception) -> bool:
        """Returns whether a new client may succeed later; False if a connection failed for good."""
        if self._is_final(error) or (self._last is not None and self._is_final(self._last[1])):
            return False
        return may_pass(error) or isinstance(error, OSError)

    def problem(self, error: BaseException) -> str:
        """Returns an error's text; for a lost connection, the text of the last recorded failure."""
        errors = self._errors
        lost = (
            errors.KafkaConnectionError,
            errors.KafkaTimeoutError,
            errors.NodeNotReadyError,
            errors.RequestTimedOutError,
        )
        if self._is_final(error) or self._last is None or not isinstance(error, lost):
            return self._text(error)
        address, reason = self._last
        host, _, port = address.rpartition(":")
        given = {*self._settings["bootstrap_servers"]}
        where = f"its broker is not reached at {address}, which it advertises: "
        if given & {address, f"[{host}]:{port}"}:
            where = ""
        elif given & {host, f"[{host}]"}:
            where = f"no port is given, so {port} is used: "
        return where + self._text(reason)

    def _text(self, error: BaseException) -> str:
        errors, settings = self._errors, self._settings
        protocol = settings.get("security_protocol", "PLAINTEXT")
        mechanism = settings.get("sasl_mechanism")
        if (found := _tls_error(error)) is not None:
            return tls_problem(found)
        if isinstance(error, errors.SaslAuthenticationFailedError):
            user = settings.get("sasl_plain_username")
            who = f"user {user}" if user else "this client"
            return f"{who} is not authenticated by {mechanism}: {str(error).rpartition(': ')[2]}"
        if isinstance(error, errors.UnsupportedSaslMechanismError):
            return f"sasl.mechanism: the listener does not offer {mechanism}"
        if isinstance(error, errors.IllegalSaslStateError):
            return f"security.protocol: the listener takes no SASL, but this is {protocol}"
        if self.has_begun and _ENDED in str(error):
            return "the broker ended the connection"
        if _ENDED in str(error) or isinstance(error, errors.InvalidReceiveError):
            return (
                "the broker ended the connection without an answer; does the listener speak "
                f"{protocol}? The file of --command-config sets security.protocol"
            )
        if isinstance(error, (errors.KafkaTimeoutError, errors.RequestTimedOutError)):
            seconds = settings.get("bootstrap_timeout_ms", 30_000) / 1000
            return f"no answer within {seconds:g} s"
        if isinstance(error, errors.UnknownBrokerIdError):
            return "a partition that is read has no live leader"
        if isinstance(error, errors.KafkaConnectionError) and not error.args:
            return "the connection is lost"
        return f"not connected: {_last_line(error)}"


def _last_answers(connection_made: Callable[[Any], None]) -> Callable[[Any], None]:
    """Lets a connection read the data that the broker sent before it closed the connection.

    A broker that refuses a password answers and closes at once. kafka-python reads both together,
    and drops the answer, which contains the reason.
    """

    def made(transport: Any) -> None:
        receive = transport._sock_recv

        def received() -> tuple[bytes, BaseException | None]:
            data, error = receive()
            return data, None if data else error  # the next call returns the error

        transport._sock_recv = received
        connection_made(transport)

    return made


def _noted(connection: Any, heard: Callable[[], None]) -> Callable[[bytes], None]:
    """Wraps `data_received`: calls `heard` for each whole answer, not for parts of an answer."""
    receive = connection.data_received

    def received(data: bytes) -> None:
        waiting = len(connection.in_flight_requests)
        receive(data)
        if len(connection.in_flight_requests) < waiting:
            heard()

    return received


def _tls_error(error: BaseException) -> ssl.SSLError | None:
    """Returns the TLS error in the arguments or the context of a client's error."""
    seen: list[Any] = [error, error.__context__, *getattr(error, "args", ())]
    return next((one for one in seen if isinstance(one, ssl.SSLError)), None)


def _last_line(error: BaseException) -> str:
    text = str(error).strip().rpartition("\n")[2] or type(error).__name__
    text = text.removeprefix("KafkaConnectionError: ")
    number = _ERRNO.fullmatch(text)
    return os.strerror(int(number[1])) if number else text


class _WithoutSecrets(logging.Filter):
    """Removes secrets from log records: kafka-python logs the bytes that it sends."""

    def __init__(self, secrets: list[str]) -> None:
        super().__init__()
        as_bytes = [repr(secret.encode())[2:-1] for secret in secrets]
        self._secrets = {text for text in (*secrets, *as_bytes) if text}

    def without(self, sentence: str) -> str:
        for secret in self._secrets:
            sentence = masked(sentence, secret)
        return _BEARER.sub(r"\1***", sentence)

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        for secret in self._secrets:  # logged bytes have no word boundaries, which `masked` needs
            text = text.replace(secret, "***")
        record.msg, record.args = _BEARER.sub(r"\1***", text), None
        return True
