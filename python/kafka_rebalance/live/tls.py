# SPDX-License-Identifier: Apache-2.0
"""Makes an SSL context from Kafka's `ssl.*` settings, with their meaning in Kafka's own clients.

Trust    `ssl.truststore.certificates` (PEM text), else `ssl.truststore.location`, else the
         certificates that the system trusts. As in Java, every certificate in a trust store is
         trusted, even without its issuer.
Key      `ssl.keystore.key` with `ssl.keystore.certificate.chain` (PEM text), else the first private
         key of `ssl.keystore.location`.
Types    a file's content shows its type (JKS, PKCS12 or PEM); `ssl.*.type` is not read.
Stores   JKS is read in plain Python, PKCS12 with `cryptography`.

A JKS file has a magic number, the version and the number of entries; then the entries: each a
private key with its certificate chain (tag 1), or a trusted certificate (tag 2). The last 20 bytes
are the SHA-1 of the password, a fixed string and all bytes before them. Numbers are big-endian; a
string or bytes follow their length. A key has 20 bytes of salt; the PKCS#8 bytes, XORed with a
stream of SHA-1 digests; the SHA-1 of the password and the plain bytes. The stream's first digest is
the SHA-1 of the password and the salt, each later one the SHA-1 of the password and the digest
before it.

Errors   ClusterError with the name of the setting, never with a password.
Source   sun.security.provider.JavaKeyStore and KeyProtector.
"""

import base64
import hashlib
import importlib
import re
import ssl
import struct
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from kafka_rebalance.errors import ClusterError, MissingExtra

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_PEM = b"-----BEGIN "
_BLOCK = re.compile(r"-----BEGIN ([A-Z ]+)-----([\w+/=\s]*)-----END \1-----", re.ASCII)


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


def ssl_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    enabled = properties.get("ssl.enabled.protocols", "TLSv1.2,TLSv1.3").split(",")
    versions = [_VERSIONS[one.strip()] for one in enabled if one.strip() in _VERSIONS]
    if not versions:
        raise ClusterError(f"ssl.enabled.protocols: has none of {', '.join(_VERSIONS)}")
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    # Kafka's default is "https"; an empty value disables the check of the host name.
    context.check_hostname = properties.get("ssl.endpoint.identification.algorithm", "https") != ""
    _trust(context, properties)
    _identify(context, properties)
    return context


def _trust(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    setting = "ssl.truststore.certificates"
    if setting in properties:
        trusted: str | bytes = _lines(properties[setting])
    elif "ssl.truststore.location" in properties:
        setting = "ssl.truststore.location"
        data = _read(properties, setting)
        if data.lstrip().startswith(_PEM):
            trusted = data.decode("utf-8", "replace")
        else:
            store = _store(data, properties, "truststore")
            trusted = b"".join([*store.trusted, *(store.key.chain if store.key else ())])
    else:
        context.load_default_certs()
        return
    # Java trusts a certificate of the store even if it is not a root certificate.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        if not trusted:
            raise ClusterError(f"{setting}: it has no certificate")
        if isinstance(trusted, str):
            # OpenSSL accepts only ASCII; other characters occur only outside the certificates.
            trusted = trusted.encode("ascii", "replace").decode("ascii")
        context.load_verify_locations(cadata=trusted)
    except ssl.SSLError as error:
        raise ClusterError(f"{setting}: not certificates: {error.reason or error}") from None


def _identify(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    password = properties.get("ssl.key.password")
    if "ssl.keystore.key" in properties:
        chain = properties.get("ssl.keystore.certificate.chain", "")
        _load_text(context, _lines(f"{properties['ssl.keystore.key']}\n{chain}"), password)
    elif "ssl.keystore.location" in properties:
        data = _read(properties, "ssl.keystore.location")
        if data.lstrip().startswith(_PEM):
            _load(context, Path(properties["ssl.keystore.location"]), password)
            return
        store = _store(data, properties, "keystore")
        if store.key is None:
            raise ClusterError("ssl.keystore.location: it has no private key")
        _load_text(context, store.key.pem(), None)


def _load_text(context: ssl.SSLContext, pem: str, password: str | None) -> None:
    """Loads a key and its chain from a temporary file, because Python reads only files."""
    with tempfile.TemporaryDirectory(prefix="kafka-rebalance-") as directory:
        file = Path(directory) / "key.pem"
        file.touch(mode=0o600)
        file.write_text(pem)
        _load(context, file, password)


def _load(context: ssl.SSLContext, file: Path, password: str | None) -> None:
    try:
        # Without a password, OpenSSL would ask for one on the terminal.
        context.load_cert_chain(file, password=password or "")
    except (ssl.SSLError, ValueError):  # ValueError: a password that is too long for OpenSSL
        raise ClusterError(
            "ssl.keystore: the private key and its certificate chain cannot be read together; is "
            "ssl.key.password right, and do the two belong to each other?"
        ) from None


def _lines(text: str) -> str:
    """Adds the line breaks that PEM text from a properties file may lack."""
    return _BLOCK.sub(
        lambda block: (
            f"-----BEGIN {block[1]}-----\n"
            + "\n".join(textwrap.wrap("".join(block[2].split()), 64))
            + f"\n-----END {block[1]}-----\n"
        ),
        text,
    )


def _store(data: bytes, properties: Mapping[str, str], which: str) -> Store:
    password = properties.get(f"ssl.{which}.password")
    try:
        return read_store(data, password, properties.get("ssl.key.password"))
    except ClusterError as error:
        location = properties[f"ssl.{which}.location"]
        raise ClusterError(f"ssl.{which}.location: {location}: {error}") from None


def _read(properties: Mapping[str, str], setting: str) -> bytes:
    try:
        return Path(properties[setting]).read_bytes()
    except OSError as error:
        raise ClusterError(f"{setting}: {properties[setting]}: {error.strerror}") from None


def tls_problem(error: ssl.SSLError) -> str:
    """Returns a TLS error in words: its meaning, and for most errors a remedy."""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message.rstrip(".")
        of, mend = "the CA of ", "name that CA in ssl.truststore.location"
        if "mismatch" in why:
            of, mend = "", "use the name in the certificate"
        elif "expired" in why or "not yet valid" in why:
            of, mend = "", "renew it, or set this machine's clock"
        return f"{of}the server's certificate is not trusted (OpenSSL: {why}); {mend}"
    reason = (error.reason or str(error)).upper()
    found = (text for pattern, text in _PROBLEMS.items() if re.search(pattern, reason, re.DOTALL))
    return next(found).replace("{}", reason.lower().replace("_", " "))


_PROBLEMS = {
    "PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL": "the server has no version of TLS that this client "
    "has ({}); this client has TLSv1.2 and TLSv1.3, as far as ssl.enabled.protocols allows them",
    "^(?=.*ALERT).*HANDSHAKE_FAILURE": "the server ended the TLS handshake ({}): it wants a client "
    "certificate, which ssl.keystore.location names, or it has no version or cipher in common with "
    "this client",
    "^(?=.*ALERT).*(CERTIFICATE|CA)": "the server wants another client certificate ({}); "
    "ssl.keystore.location names it",
    "WRONG_VERSION|RECORD|EOF": "no TLS is spoken there ({}); is it the right port?",
    "": "TLS failed: {}",
}
"""A pattern of OpenSSL's `reason` -> the error in words; the first pattern that matches counts."""


# Java's key stores and trust stores ---------------------------------------------------------------

_JKS, _JCEKS = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"
_WHITENER = b"Mighty Aphrodite"
_DIGEST = 20  # bytes of a SHA-1
_KEY, _CERTIFICATE = 1, 2


def read_store(data: bytes, password: str | None, key_password: str | None = None) -> Store:
    """Returns the contents of a JKS or PKCS12 store. Errors: MissingExtra; ClusterError."""
    if data.startswith(_JKS):
        return _jks(data, password, key_password or password)
    if data.startswith(_JCEKS):
        raise ClusterError("it is a JCEKS store; keytool -importkeystore makes a PKCS12 store")
    if data.startswith(b"\x30"):
        return _pkcs12(data, password)
    raise ClusterError("it is neither a JKS, a PKCS12 nor a PEM store")


def _armoured(label: str, der: bytes) -> str:
    text = base64.encodebytes(der).decode()
    return f"-----BEGIN {label}-----\n{text}-----END {label}-----\n"


def _jks(data: bytes, password: str | None, key_password: str | None) -> Store:
    body, digest = data[:-_DIGEST], data[-_DIGEST:]
    if password is not None:  # as in Java, a store is checked only if a password is given
        wanted = hashlib.sha1(_java_bytes(password) + _WHITENER + body).digest()
        if wanted != digest:
            raise ClusterError("the password is wrong, or the file is damaged")
    try:
        return _entries(BytesIO(body[len(_JKS) :]), key_password)
    except (struct.error, IndexError, ValueError, StopIteration):
        # A length in the file points beyond the file's end, or the sealed key is not DER.
        raise ClusterError("the file is damaged") from None


def _entries(file: BytesIO, key_password: str | None) -> Store:
    version, count = _number(file, ">I"), _number(file, ">I")
    trusted: list[bytes] = []
    key: KeyPair | None = None
    for _ in range(count):
        tag = _number(file, ">I")
        _bytes(file, ">H")  # alias
        _number(file, ">Q")  # the entry's creation time
        if tag == _CERTIFICATE:
            trusted.append(_certificate(file, version))
            continue
        if tag != _KEY:
            raise ValueError(tag)
        sealed = _bytes(file, ">I")
        chain = [_certificate(file, version) for _ in range(_number(file, ">I"))]
        key = key or KeyPair(_opened(sealed, key_password), chain)
    return Store(trusted, key)


def _certificate(file: BytesIO, version: int) -> bytes:
    if version > 1:
        _bytes(file, ">H")  # the type, X.509
    return _bytes(file, ">I")


def _number(file: BytesIO, form: str) -> int:
    (value,) = struct.unpack(form, file.read(struct.calcsize(form)))
    return int(value)


def _bytes(file: BytesIO, form: str) -> bytes:
    size = _number(file, form)
    found = file.read(size)
    if len(found) < size:
        raise ValueError(size)
    return found


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
