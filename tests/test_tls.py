# SPDX-License-Identifier: Apache-2.0
"""Trust stores of PEM text, as Java's clients read them; damaged stores, and errors of TLS."""

from __future__ import annotations

import hashlib
import random
import ssl
import struct
from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.errors import ClusterError
from kafka_rebalance.live.tls import read_store, ssl_context, tls_problem

if TYPE_CHECKING:
    from pathlib import Path

CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBcTCCARegAwIBAgIUM9NrTcguuxGXpxx3ua80cUk+rUEwCgYIKoZIzj0EAwIw
DTELMAkGA1UEAwwCY2EwIBcNMjYxMTIzMDEwODI3WhgPMjEyNjEwMzAwMTA4Mjda
MA0xCzAJBgNVBAMMAmNhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEvcHg+TzQ
2kDKH4a20dvg2Iioe7PicELBhZwKY66Rn3eZlGuiUM1AOAcYUIUNvYCvF4oJRu0D
88woe+BD4qwInqNTMFEwHQYDVR0OBBYEFC5gbLoNtJe/+/gOD8UJTOtgPw1cMB8G
A1UdIwQYMBaAFC5gbLoNtJe/+/gOD8UJTOtgPw1cMA8GA1UdEwEB/wQFMAMBAf8w
CgYIKoZIzj0EAwIDSAAwRQIgWiqZLquzbavSAWwQppETzoOacbwgQQ6UvvJXsse+
Zz0CIQC9+JDtPTKKj8peD1okEjQzmk1izi1nwRlsIXW8Mr3zRQ==
-----END CERTIFICATE-----
"""


@pytest.mark.parametrize("between", ["", "subject=CN = Zürich\n", "\ufeff主\n"])
def test_text_around_certificates_may_have_any_letters(tmp_path: Path, between: str) -> None:
    file = tmp_path / "ca.pem"
    file.write_text(f"{CERTIFICATE}{between}{CERTIFICATE}", encoding="utf-8")
    for settings in (
        {"ssl.truststore.location": str(file)},
        {"ssl.truststore.certificates": file.read_text(encoding="utf-8")},
    ):
        (trusted,) = ssl_context(settings).get_ca_certs()
        assert trusted["subject"] == ((("commonName", "ca"),),)


def test_text_that_is_no_certificate_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("-----BEGIN CERTIFICATE-----\nZürich\n", encoding="utf-8")
    with pytest.raises(ClusterError, match=r"ssl\.truststore\.location: not certificates: "):
        ssl_context({"ssl.truststore.location": str(file)})


def jks(sealed: bytes, password: str) -> bytes:
    """Returns a key store with one sealed private key and no certificate."""
    entry = struct.pack(">IH", 1, 0) + bytes(8) + struct.pack(">I", len(sealed)) + sealed
    body = b"\xfe\xed\xfe\xed" + struct.pack(">II", 2, 1) + entry + struct.pack(">I", 0)
    secret = password.encode("utf-16-be") + b"Mighty Aphrodite"
    return body + hashlib.sha1(secret + body).digest()


def test_a_damaged_sealed_key_is_an_error_of_the_store() -> None:
    rng = random.Random(7)
    sealed = [b"", b"\x30", b"\x30\x82", b"\x30\x00", b"\x30\x02\x04\x00"]
    sealed += [rng.randbytes(rng.randrange(60)) for _ in range(300)]
    for one in sealed:
        with pytest.raises(ClusterError, match=r"damaged|wrong"):
            read_store(jks(one, "secret"), "secret")


@pytest.mark.parametrize(
    ("most", "ciphers", "problem"),
    [
        (ssl.TLSVersion.TLSv1_1, "ALL:@SECLEVEL=0", "has no version of TLS that this client has"),
        (ssl.TLSVersion.TLSv1_2, "AES128-SHA:@SECLEVEL=0", "no version or cipher in common"),
    ],
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_a_server_that_has_nothing_in_common(
    most: ssl.TLSVersion, ciphers: str, problem: str
) -> None:
    """The handshake needs no socket: the test passes each side's bytes to the other side."""
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.set_ciphers(ciphers)
    theirs.minimum_version, theirs.maximum_version = most, most
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl_context({}).wrap_bio(to_client, to_server, server_hostname="h")
    server = theirs.wrap_bio(to_server, to_client, server_side=True)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    with pytest.raises(ssl.SSLError):
        server.do_handshake()
    with pytest.raises(ssl.SSLError) as raised:
        client.do_handshake()
    assert problem in tls_problem(raised.value)
