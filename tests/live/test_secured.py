# SPDX-License-Identifier: Apache-2.0
"""The commands on a real broker with TLS, SASL and ACLs, and properties files in Kafka's format."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import logging
import re
import shutil
import ssl
import threading
import urllib.parse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support.broker import missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")

from kafka import KafkaAdminClient

from kafka_rebalance.cli import main
from tests.support.live_members import PythonMembers, await_stable
from tests.support.secured_broker import (
    PASSWORD,
    SECRETS,
    STORE_PASSWORD,
    Stores,
    escaped,
    permit,
    sasl,
    secured_broker,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.live


class Secured(NamedTuple):
    stores: Stores
    addresses: dict[str, str]
    plaintext: str

    def file(self, name: str, *lines: str) -> str:
        path = self.stores.directory / name
        path.write_text("\n".join(lines), encoding="latin-1")
        return str(path)

    def at(self, listener: str, config: str) -> tuple[str, ...]:
        server = self.addresses.get(listener, self.plaintext)
        return ("--bootstrap-server", server, "--command-config", config)

    def trust(self, form: str = "pem") -> str:
        location = f"ssl.truststore.location={self.stores.directory / 'ca.pem'}"
        if form == "pem":
            return f"{location}\nssl.truststore.type=PEM"
        return (
            f"ssl.truststore.location={self.stores.directory / 'trust'}.{form}\n"
            f"ssl.truststore.password={STORE_PASSWORD}"
        )


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    missing = missing_tools() or (
        None if shutil.which("keytool") else "no `keytool` on PATH: install a JDK"
    )
    if missing:
        pytest.skip(missing)
    stores = Stores(tmp_path_factory.mktemp("stores"))
    stores.make()
    with secured_broker(stores) as broker, PythonMembers(broker.bootstrap_server) as members:
        permit(broker.bootstrap_server)
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_server) as admin:
            admin.create_topics(
                {name: {"num_partitions": 4} for name in ("orders", "hidden")},
                wait_for_metadata=True,
            )
        for n in range(2):
            members.add("kafka-python", "payments", f"payments-{n}", "range", ["orders"])
        members.add("kafka-python", "audit", "audit-0", "range", ["hidden"])
        await_stable(broker.bootstrap_server, {"payments": 2, "audit": 1})
        yield Secured(stores, broker.addresses, broker.bootstrap_server)


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def answers(self) -> list[Any]:
        assert self.code == 0, self.err
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Ran]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Run:
    """Runs a command with the client's debug log; fails if a secret appears anywhere."""
    caplog.set_level(logging.DEBUG, "kafka")

    def run(*arguments: str) -> Ran:
        code = main(arguments)
        out, err = capfd.readouterr()
        everything = "".join((out, err, caplog.text))
        for secret in SECRETS:
            assert secret not in everything
            assert repr(secret.encode())[2:-1] not in everything
        assert not re.search("Bearer [^*]", everything)
        assert "Traceback" not in out + err
        return Ran(code, out, err)

    return run


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_sasl(secured: Secured, mechanism: str, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    config = secured.file("client.properties", sasl(mechanism), secured.trust())
    cluster = secured.at("SECURED", config)
    everything = ("--bootstrap-server", secured.plaintext, "--group", "payments")
    for command in (["snapshot"], *([name, "--json"] for name in ("plan", "compare", "describe"))):
        # The group itself may change between two looks, for example on a loaded machine.
        for _ in range(5):
            before = run(*command, *everything).answers
            found = run(*command, *cluster, "--group", "payments").answers
            if before == run(*command, *everything).answers:
                break
        assert found == before
    # The client logged the bytes that it sent, so a secret in them would have been found.
    assert "Send: b" in caplog.text
    assert "SaslAuthenticateRequest" in caplog.text


STORES = {
    "p12": "{trust_p12}\nssl.keystore.location={d}/client.p12\nssl.keystore.password={p}",
    "jks": "{trust_jks}\nssl.keystore.location={d}/client.jks\nssl.keystore.password={p}",
    "pem": "{trust_pem}\nssl.keystore.location={d}/client.pem\nssl.key.password={p}",
    "inline": (
        "ssl.truststore.certificates={ca}\nssl.keystore.certificate.chain={chain}\n"
        "ssl.keystore.key={key}\nssl.key.password={p}"
    ),
}


@pytest.mark.parametrize("form", STORES)
def test_mutual_tls_with_every_kind_of_store(secured: Secured, form: str, run: Run) -> None:
    def continued(name: str) -> str:
        return "\\\n ".join(secured.stores.text(name).splitlines())

    text = STORES[form].format(
        d=secured.stores.directory,
        p=STORE_PASSWORD,
        ca=continued("ca.pem"),
        chain=continued("client.crt"),
        key=continued("client-sealed.key"),
        **{f"trust_{one}": secured.trust(one) for one in ("p12", "jks", "pem")},
    )
    config = secured.file("mutual.properties", "security.protocol=SSL", text)
    cluster = secured.at("MUTUAL", config)
    (line,) = run("snapshot", *cluster, "--group", "payments").answers
    assert sorted(member["client_id"] for member in line["members"]) == ["payments-0", "payments-1"]
    described = run("describe", *cluster, "--group", "payments")
    assert described.code == 0
    assert "\npayments, kafka-python/range: 2 members, 4 partitions owned" in described.out


def _broken(secured: Secured) -> dict[str, tuple[str, list[str], str]]:
    """Maps each mistake to the listener, the lines of the settings file, and the expected error."""
    good, scram, trust = sasl("SCRAM-SHA-512"), "SCRAM-SHA-512", secured.trust()
    other = trust.replace("ca.pem", "other-ca.pem")
    jks = secured.trust("jks")
    key = f"ssl.keystore.location={secured.stores.directory}/client.pem\nssl.key.password="
    return {
        "wrong password": (
            "SECURED",
            [sasl(scram, password="guessed-3"), trust],
            "user viewer is not authenticated by SCRAM-SHA-512: ",
        ),
        "wrong password for PLAIN": (
            "SECURED",
            [sasl("PLAIN", password="guessed-3"), trust],
            "user viewer is not authenticated by PLAIN: ",
        ),
        "mechanism that is not offered": (
            "SECURED",
            [sasl(scram).replace("SHA-512", "SHA-256"), trust],
            "sasl.mechanism: the listener does not offer SCRAM-SHA-256",
        ),
        "unknown CA": (
            "SECURED",
            [good, other],
            "the CA of the server's certificate is not trusted (",
        ),
        "no CA": ("SECURED", [good], "name that CA in ssl.truststore.location"),
        "no certificate of the client": (
            "MUTUAL",
            ["security.protocol=SSL", trust],
            "wants another client certificate",
        ),
        "wrong password of a key": (
            "MUTUAL",
            ["security.protocol=SSL", trust, key + "guessed-3"],
            "is ssl.key.password right",
        ),
        "wrong password of a store": (
            "SECURED",
            [good, jks.replace(STORE_PASSWORD, "guessed-3")],
            "ssl.truststore.location: ",
        ),
        "no TLS": (
            "SECURED",
            [good.replace("SASL_SSL", "SASL_PLAINTEXT")],
            "does the listener speak SASL_PLAINTEXT?",
        ),
        "no settings": ("SECURED", [], "does the listener speak PLAINTEXT?"),
        "TLS on a plaintext port": ("PLAINTEXT", [good, trust], "no TLS is spoken there"),
        "SASL on a port without": (
            "PLAINTEXT",
            [good.replace("SASL_SSL", "SASL_PLAINTEXT")],
            "security.protocol: the listener takes no SASL",
        ),
        "SASL on a TLS port without": (
            "MUTUAL",
            [good, trust, key + STORE_PASSWORD],
            "security.protocol: the listener takes no SASL, but this is SASL_SSL",
        ),
    }


def test_what_is_wrong_is_one_line(secured: Secured, run: Run) -> None:
    for what, (listener, lines, said) in _broken(secured).items():
        config = secured.file("broken.properties", *lines)
        ran = run("snapshot", *secured.at(listener, config), "--timeout", "4")
        assert ran.code == 1, what
        assert ran.out == "", what
        assert "guessed-3" not in ran.err, what
        (line,) = ran.err.splitlines()
        assert line.startswith("kafka-rebalance: "), what
        assert said in line, (what, line)


def test_missing_permissions_are_named(secured: Secured, run: Run) -> None:
    def seen(user: str, *arguments: str) -> Ran:
        config = secured.file(f"{user}.properties", sasl("SCRAM-SHA-512", user), secured.trust())
        return run("snapshot", *secured.at("SECURED", config), *arguments)

    # This user may describe every group, but not the topic of one of them.
    viewer = [json.loads(line) for line in seen("viewer").out.splitlines()]
    assert [line["group_id"] for line in viewer if "error" not in line] == ["payments"]
    assert [line for line in viewer if "error" in line] == [
        {
            "group_id": "audit",
            "error": "topics: no permission: this user needs Describe on Topic hidden",
        }
    ]
    # With Describe on the cluster but on no group, groups are listed but not described.
    lister = [json.loads(line) for line in seen("lister").out.splitlines()]
    assert {line["group_id"]: line["error"] for line in lister} == {
        name: f"group_id: no permission: this user needs Describe on Group {name}"
        for name in ("audit", "payments")
    }
    nobody = seen("nobody")
    assert nobody.out == ""
    assert "needs Describe on Cluster kafka-cluster, or on each Group" in nobody.err
    named = seen("nobody", "--group", "payments")
    assert "no such group, or no permission Describe on it" in named.out


def test_a_user_that_sees_half_of_a_cluster_is_told_so(secured: Secured, run: Run) -> None:
    config = secured.file("half.properties", sasl("SCRAM-SHA-512", "half"), secured.trust())
    for words in (
        ("snapshot",),
        ("describe",),
        ("plan", "--add-members", "1"),
        ("compare",),
    ):
        ran = run(*words, *secured.at("SECURED", config))
        assert ran.code == 0, words
        assert "payments" in ran.out, words
        assert "audit" not in ran.out, words
        assert "left out: groups that this user may not Describe, if there are any" in ran.err
    for words in (("plan", "--add-members", "1"), ("describe",), ("simulate",)):
        hidden = run(*words, "--group", "audit", *secured.at("SECURED", config))
        assert hidden.code == 3
        assert "audit: group_id: no such group, or no permission Describe on it" in hidden.err
        named = run(*words, "--group", "payments", *secured.at("SECURED", config))
        assert (named.code, "left out" in named.err) == (0, False)


def test_history_needs_read_on_one_topic(secured: Secured, run: Run) -> None:
    def seen(user: str) -> Ran:
        config = secured.file(f"{user}.properties", sasl("SCRAM-SHA-512", user), secured.trust())
        return run("history", *secured.at("SECURED", config), "--json")

    rows = seen("reader").answers
    assert {row["group_id"] for row in rows} == {"audit", "payments"}
    for user in ("nobody", "lister"):  # the second one may describe the topic
        ran = seen(user)
        assert (ran.code, ran.out, len(ran.err.splitlines())) == (1, "", 1), ran.err
        assert "needs Describe and Read on Topic __consumer_offsets" in ran.err


def test_watch_follows_descriptions_without_read(secured: Secured, run: Run) -> None:
    def seen(user: str) -> Ran:
        config = secured.file(f"{user}.properties", sasl("SCRAM-SHA-512", user), secured.trust())
        return run("watch", *secured.at("SECURED", config), "--group", "payments", "--for", "8")

    ran = seen("viewer")
    assert ran.code == 0
    assert ran.err.splitlines()[0] == (
        "kafka-rebalance: following descriptions: no permission: this user needs Describe and Read "
        "on Topic __consumer_offsets"
    )


def test_connect_over_https_with_basic_authentication(secured: Secured, run: Run) -> None:
    """The client uses real TLS; the server is a small one of this test, in place of Connect."""
    with worker(secured.stores, f"viewer:{PASSWORD}") as url:
        user = f"basic.auth.user.info=viewer:{escaped(PASSWORD)}"
        config = secured.file("connect.properties", secured.trust(), user)
        ran = run("connect", "--url", url, "--command-config", config)
        assert ran.code == 0, ran.err
        assert ran.out.startswith(f"{url}: ")
        for what, lines, said in (
            ("no CA", [user], "the CA of the server's certificate is not trusted ("),
            (
                "no user",
                [secured.trust()],
                "HTTP 401, the user or the password is missing or wrong",
            ),
        ):
            config = secured.file("connect.properties", *lines)
            ran = run("connect", "--url", url, "--command-config", config)
            assert (ran.code, ran.out, len(ran.err.splitlines())) == (1, "", 1), what
            assert said in ran.err, what
        # A password in the URL must not be printed either.
        trust = secured.file("connect.properties", secured.trust())
        secret = urllib.parse.quote(PASSWORD, safe="")
        named = url.replace("//", f"//viewer:{secret}@")
        ran = run("connect", "--url", named, "--command-config", trust, "--json")
        assert (ran.code, json.loads(ran.out)["id"]) == (0, url)
        assert secret not in ran.out + ran.err


@contextlib.contextmanager
def worker(stores: Stores, user_info: str) -> Iterator[str]:
    """Serves the REST interface of a worker with one connector, over TLS; yields its URL."""
    status = {"state": "RUNNING", "worker_id": "w:8083"}
    connector = {"info": {"tasks": []}, "status": {"connector": status, "tasks": []}}
    pages: dict[str, Any] = {
        "/connectors?expand=status&expand=info": {"c": connector},
        "/connectors": ["c"],
    }
    wanted = "Basic " + base64.b64encode(user_info.encode()).decode()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.headers["Authorization"] == wanted else 401)
            self.end_headers()
            self.wfile.write(json.dumps(pages[self.path]).encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(stores.directory / "server.crt", stores.directory / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
