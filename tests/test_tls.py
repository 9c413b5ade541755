# SPDX-License-Identifier: Apache-2.0
"""Trust stores of PEM text, as Java's clients read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.errors import ClusterError
from kafka_rebalance.live.tls import ssl_context

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
