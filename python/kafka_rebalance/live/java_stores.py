# SPDX-License-Identifier: Apache-2.0
"""Reads Java's key stores and trust stores: JKS in plain Python, PKCS12 with `cryptography`.

JKS      a magic number, the version and the number of entries; then the entries: each a private key
         with its certificate chain (tag 1), or a trusted certificate (tag 2). The last 20 bytes are
         the SHA-1 of the password, a fixed string and all bytes before them. Numbers are
         big-endian; a string or bytes follow their length.
Keys     20 bytes of salt; the PKCS#8 bytes, XORed with a stream of SHA-1 digests; the SHA-1 of the
         password and the plain bytes. The stream's first digest is the SHA-1 of the password and
         the salt, each later one the SHA-1 of the password and the digest before it.
Source   sun.security.provider.JavaKeyStore and KeyProtector.
"""

import base64
import hashlib
import importlib
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from kafka_rebalance.errors import ClusterError, MissingExtra

_JKS, _JCEKS = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"
_WHITENER = b"Mighty Aphrodite"
_DIGEST = 20  # bytes of a SHA-1
_KEY, _CERTIFICATE = 1, 2


class KeyPair(NamedTuple):
    """A private key (PKCS#8), its certificate, and its issuers' certificates; all are DER."""

    key: bytes
    chain: list[bytes]

    def pem(self) -> str:
        certificates = "".join(_armoured("CERTIFICATE", one) for one in self.chain)
        return _armoured("PRIVATE KEY", self.key) + certificates


class Store(NamedTuple):
    """A store's trusted certificates (DER), and its first private key."""

    trusted: list[bytes]
    key: KeyPair | None


def read_store(data: bytes, password: str | None, key_password: str | None = None) -> Store:
    """Returns the contents of a JKS or PKCS12 store. Errors: MissingExtra; ClusterError."""
    if data.startswith(_JKS):
        return _Jks(data, password).read(key_password or password)
    if data.startswith(_JCEKS):
        raise ClusterError("it is a JCEKS store; keytool -importkeystore makes a PKCS12 store")
    if data.startswith(b"\x30"):
        return _pkcs12(data, password)
    raise ClusterError("it is neither a JKS, a PKCS12 nor a PEM store")


def _armoured(label: str, der: bytes) -> str:
    text = base64.encodebytes(der).decode()
    return f"-----BEGIN {label}-----\n{text}-----END {label}-----\n"


class _Jks:
    def __init__(self, data: bytes, password: str | None) -> None:
        body, digest = data[:-_DIGEST], data[-_DIGEST:]
        if password is not None:  # as in Java, a store is checked only if a password is given
            wanted = hashlib.sha1(_java_bytes(password) + _WHITENER + body).digest()
            if wanted != digest:
                raise ClusterError("the password is wrong, or the file is damaged")
        self._body, self._at = body, len(_JKS)

    def read(self, key_password: str | None) -> Store:
        try:
            return self._entries(key_password)
        except (struct.error, IndexError, ValueError, StopIteration):
            # A length in the file points beyond the file's end, or the sealed key is not DER.
            raise ClusterError("the file is damaged") from None

    def _entries(self, key_password: str | None) -> Store:
        version, count = self._number(">I"), self._number(">I")
        trusted: list[bytes] = []
        key: KeyPair | None = None
        for _ in range(count):
            tag = self._number(">I")
            self._bytes(">H")  # alias
            self._number(">Q")  # the time of its creation
            if tag == _CERTIFICATE:
                trusted.append(self._certificate(version))
                continue
            if tag != _KEY:
                raise ClusterError("the file is damaged")
            sealed = self._bytes(">I")
            chain = [self._certificate(version) for _ in range(self._number(">I"))]
            key = key or KeyPair(_opened(sealed, key_password), chain)
        return Store(trusted, key)

    def _certificate(self, version: int) -> bytes:
        if version > 1:
            self._bytes(">H")  # the type, X.509
        return self._bytes(">I")

    def _number(self, form: str) -> int:
        (value,) = struct.unpack_from(form, self._body, self._at)
        self._at += struct.calcsize(form)
        return int(value)

    def _bytes(self, form: str) -> bytes:
        size = self._number(form)
        self._at += size
        if self._at > len(self._body):
            raise ClusterError("the file is damaged")
        return self._body[self._at - size : self._at]


def _opened(sealed: bytes, password: str | None) -> bytes:
    """Returns the private key of an EncryptedPrivateKeyInfo that Java's own algorithm encrypted."""
    if password is None:
        raise ClusterError("a password is needed for the private key")
    _, protected = _der_values(next(_der_values(sealed)))
    salt, text, check = protected[:_DIGEST], protected[_DIGEST:-_DIGEST], protected[-_DIGEST:]
    secret, stream, digest = _java_bytes(password), b"", salt
    while len(stream) < len(text):
        digest = hashlib.sha1(secret + digest).digest()
        stream += digest
    plain = bytes(a ^ b for a, b in zip(text, stream, strict=False))
    if hashlib.sha1(secret + plain).digest() != check:
        raise ClusterError("the password of the private key is wrong")
    return plain


def _der_values(data: bytes) -> Iterator[bytes]:
    """Yields the contents of each DER value at the top level of `data`."""
    at = 0
    while at < len(data):
        size, at = data[at + 1], at + 2
        if size > 0x7F:
            more = size & 0x7F
            size, at = int.from_bytes(data[at : at + more], "big"), at + more
        yield data[at : at + size]
        at += size


def _java_bytes(password: str) -> bytes:
    return password.encode("utf-16-be")


def _pkcs12(data: bytes, password: str | None) -> Store:
    try:
        module: Any = importlib.import_module("cryptography.hazmat.primitives.serialization.pkcs12")
        forms: Any = importlib.import_module("cryptography.hazmat.primitives.serialization")
    except ImportError as error:
        raise MissingExtra("a PKCS12 store", "kafka") from error
    der = forms.Encoding.DER
    try:
        found = module.load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        raise ClusterError("the password is wrong, or the file is not a PKCS12 store") from None
    others = [one.certificate.public_bytes(der) for one in found.additional_certs]
    own = [found.cert.certificate.public_bytes(der)] if found.cert else []
    if found.key is None:
        return Store(own + others, None)
    key = found.key.private_bytes(der, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    return Store(others, KeyPair(key, own + others))
