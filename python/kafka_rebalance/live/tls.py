# SPDX-License-Identifier: Apache-2.0
"""Makes an SSL context from Kafka's `ssl.*` settings, with their meaning in Kafka's own clients.

Trust    `ssl.truststore.certificates` (PEM text), else `ssl.truststore.location`, else the
         certificates that the system trusts. As in Java, every certificate in a trust store is
         trusted, even without its issuer.
Key      `ssl.keystore.key` with `ssl.keystore.certificate.chain` (PEM text), else the first private
         key of `ssl.keystore.location`.
Types    a file's content shows its type (JKS, PKCS12 or PEM); `ssl.*.type` is not read.
Errors   ClusterError with the name of the setting, never with a password.
"""

import re
import ssl
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path

from kafka_rebalance.errors import ClusterError

from .java_stores import Store, read_store

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_PEM = b"-----BEGIN "
_BLOCK = re.compile(r"-----BEGIN ([A-Z ]+)-----([\w+/=\s]*)-----END \1-----", re.ASCII)


def ssl_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Returns the context of a client with these settings."""
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
    """Adds line breaks to PEM text: they may be missing in a properties file."""
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
    if "PROTOCOL_VERSION" in reason or "UNSUPPORTED_PROTOCOL" in reason:
        ours = "this client has TLSv1.2 and TLSv1.3, as far as ssl.enabled.protocols allows them"
        return f"the server has no version of TLS that this client has ({_words(reason)}); {ours}"
    if "ALERT" in reason and "HANDSHAKE_FAILURE" in reason:
        return (
            f"the server ended the TLS handshake ({_words(reason)}): it wants a client "
            "certificate, which ssl.keystore.location names, or it has no version or cipher in "
            "common with this client"
        )
    if "ALERT" in reason and any(word in reason for word in ("CERTIFICATE", "CA")):
        return (
            f"the server wants another client certificate ({_words(reason)}); "
            "ssl.keystore.location names it"
        )
    if "WRONG_VERSION" in reason or "RECORD" in reason or "EOF" in reason:
        return f"no TLS is spoken there ({_words(reason)}); is it the right port?"
    return f"TLS failed: {_words(reason)}"


def _words(reason: str) -> str:
    return reason.lower().replace("_", " ")
