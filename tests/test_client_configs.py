# SPDX-License-Identifier: Apache-2.0
"""Settings of Kafka's clients, and clusters that do not answer.

tests/live/test_secured.py tests clusters that answer.
"""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import os
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")

from kafka_rebalance import ClusterError, snapshot
from kafka_rebalance.errors import NotReachedError
from kafka_rebalance.live import client_configs, group_lags, read_properties

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PLAIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="me" password="hidden-1";'
)
SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN}


@pytest.fixture(autouse=True)
def _no_settings_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("KAFKA_REBALANCE_")]:
        monkeypatch.delenv(name)


def test_a_file_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism = PLAIN\nacks=all\n")
    monkeypatch.setenv("KAFKA_REBALANCE_SASL_JAAS_CONFIG", PLAIN)
    monkeypatch.setenv("KAFKA_REBALANCE_SASL_MECHANISM", "SCRAM-SHA-512")  # the file takes priority
    properties = read_properties(path)
    assert properties == {**SASL, "acks": "all"}
    monkeypatch.setenv("KAFKA_REBALANCE_COMMAND_CONFIG", str(path))
    assert read_properties(None) == properties
    configs = client_configs(properties, timeout_s=2)
    assert configs == {
        "client_id": "kafka-rebalance",
        "bootstrap_timeout_ms": 2000,
        "request_timeout_ms": 2000,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "me",
        "sasl_plain_password": "hidden-1",
    }
    for shown in (repr(properties), repr(configs), f"{configs}"):
        assert "hidden" not in shown
        assert "***" in shown


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"security.protocol": "TLS"}, "security.protocol: TLS is not one of PLAINTEXT, SSL, "),
        ({"sasl.mechanism": "GSSAPI"}, "sasl.mechanism: GSSAPI is not one of PLAIN, SCRAM-"),
        ({"sasl.jaas.config": None}, "sasl.jaas.config: missing"),
        ({"sasl.jaas.config": PLAIN[:-1]}, "sasl.jaas.config: it is not MODULE required"),
        ({"sasl.jaas.config": PLAIN * 2}, "sasl.jaas.config: it has more than one login module"),
        ({"sasl.jaas.config": PLAIN.replace('1"', "1")}, "is a quote missing"),
        ({"sasl.jaas.config": PLAIN.replace("username", "user")}, "username is missing"),
        ({"sasl.jaas.config": PLAIN + "\udcff"}, "sasl.jaas.config: has bytes that are not UTF-8"),
        ({"sasl.mechanism": "OAUTHBEARER"}, "needs sasl.oauthbearer.token.endpoint.url"),
        ({"sasl.username": "me"}, "sasl.username: librdkafka's"),
        ({"ssl.ca.location": "ca.pem"}, "librdkafka's name of ssl.truststore.location"),
        ({"ssl.cipher.suites": "X"}, "ssl.cipher.suites: not supported"),
        ({"sasl.login.callback.handler.class": "a.B"}, "a.B cannot run in Python"),
        ({"config.providers": "f", "sasl.jaas.config": "${f:a:b}"}, "config.providers are not"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "absent"}, "absent: No such file"),
        ({"security.protocol": "SSL", "ssl.keystore.location": __file__}, "neither a JKS, a PKCS1"),
        ({"security.protocol": "SSL", "ssl.enabled.protocols": "SSLv3"}, "has none of TLSv1.2, TL"),
    ],
)
def test_settings_that_cannot_be_followed(settings: dict[str, str | None], problem: str) -> None:
    merged = {**SASL, **settings}
    with pytest.raises(ClusterError) as raised:
        client_configs({key: value for key, value in merged.items() if value is not None})
    assert problem in str(raised.value)
    assert "hidden" not in str(raised.value)


@contextlib.contextmanager
def answering(sent: bytes | None) -> Iterator[str]:
    """Serves a port that sends these bytes and closes each connection; None: it never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    connection.recv(1000)
                    if sent is None:
                        continue
                    connection.sendall(sent)
                    connection.close()

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


TLS_ALERT = bytes.fromhex("15030300020250")


@pytest.mark.parametrize(
    ("sent", "settings", "problem"),
    [
        (None, {}, "no answer within 0.4 s"),
        (TLS_ALERT, {}, "does the listener speak PLAINTEXT?"),
        (b"", SASL, "does the listener speak SASL_PLAINTEXT?"),
        (b"", {"security.protocol": "SSL"}, "no TLS is spoken there"),
        (b"HTTP/1.1 400\r\n\r\n", {"security.protocol": "SSL"}, "no TLS is spoken there"),
    ],
)
def test_a_cluster_that_does_not_answer(
    sent: bytes | None, settings: dict[str, str], problem: str
) -> None:
    threads = threading.active_count()
    configs = client_configs(settings, timeout_s=0.4 if sent is None else 20)
    with answering(sent) as server, pytest.raises(ClusterError) as raised:
        list(snapshot(server, configs=configs))
    assert str(raised.value).startswith(f"{server}: ")
    assert problem in str(raised.value)
    # If something else than Kafka answers, another attempt would fail for the same reason.
    assert isinstance(raised.value, NotReachedError) == (not sent and "TLS" not in problem)
    assert threading.active_count() <= threads + 1  # only the port's own thread


def test_escapes_of_java_are_characters(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("client.id = caf\\u00e9\\u0041\\:\\=\\tx\nssl.key\\ name=a\\\n  b\n")
    assert read_properties(path) == {"client.id": "caféA:=\tx", "ssl.key name": "ab"}


def test_no_cluster_there() -> None:
    for server, problem in (
        ("127.0.0.1:1", "not connected: Connection refused"),
        ("no-such-host.invalid:9092", "^no-such-host.invalid:9092: not connected: DNS"),
        ("no-such-host.invalid", "^no-such-host.invalid: no port is given, so 9092 is used: not"),
    ):
        with pytest.raises(NotReachedError, match=problem):
            group_lags(server, {"g": []}, configs=client_configs({}, timeout_s=0.3))


@contextlib.contextmanager
def token_endpoint(asked: list[tuple[str | None, str]]) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked.append((self.headers["Authorization"], body))
            self.send_response(200 if "good" in body else 401)
            self.end_headers()
            self.wfile.write(json.dumps({"access_token": "t0ken", "expires_in": 60}).encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/token"
    server.shutdown()
    server.server_close()


def test_tokens_of_an_endpoint_and_of_a_file(tmp_path: Path) -> None:
    """The client's credentials are in the header, the scope is in the form (RFC 6749, 4.4.2)."""
    asked: list[tuple[str | None, str]] = []
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    endpoint = "sasl.oauthbearer.token.endpoint.url"

    def provider(url: str, scope: str) -> Any:
        options = f'clientId="me" clientSecret="hidden-1" scope="{scope}"'
        jaas = {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{module} required {options};",
        }
        return client_configs({**SASL, **jaas, endpoint: url})["sasl_oauth_token_provider"]

    with token_endpoint(asked) as url:
        good = provider(url, "good")
        assert [good.token(), good.token()] == ["t0ken", "t0ken"]
        with pytest.raises(ClusterError, match="HTTP 401, the client is refused") as raised:
            provider(url, "bad").token()
    credentials = base64.b64encode(b"me:hidden-1").decode()
    assert asked == [
        (f"Basic {credentials}", "grant_type=client_credentials&scope=good"),
        (f"Basic {credentials}", "grant_type=client_credentials&scope=bad"),
    ]
    assert "hidden" not in str(raised.value)
    file = tmp_path / "token"
    file.write_text("from-a-file\n")
    assert provider(file.as_uri(), "").token() == "from-a-file"


def test_an_unsecured_token_is_not_issued_in_the_brokers_future(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kafka compares `iat` with whole milliseconds, and refuses a token of the fraction after."""
    monkeypatch.setattr("time.time", lambda: 1_700_000_000.000_9)
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    options = 'unsecuredLoginStringClaim_sub="me"'
    jaas = {"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": f"{module} required {options};"}
    token = client_configs({**SASL, **jaas})["sasl_oauth_token_provider"].token()
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims == {"iat": 1_700_000_000, "exp": 1_700_003_600, "sub": "me"}
