# SPDX-License-Identifier: Apache-2.0
"""Turns the settings of Kafka's own clients into arguments of kafka-python's clients.

    configs = client_configs(read_properties("client.properties"))
    groups = snapshot("broker:9093", configs=configs)

Settings have Kafka's names (`security.protocol`, `sasl.jaas.config`, `ssl.truststore.location`). If
the file lacks a setting, it is read from the environment: `sasl.jaas.config`, for example, from
KAFKA_REBALANCE_SASL_JAAS_CONFIG. Settings that do not concern security are ignored, except for
`client.id`. Most security settings that kafka-python cannot follow are errors.

The tokens of SASL/OAUTHBEARER come from where Kafka's own login modules get them:

Endpoint   `sasl.oauthbearer.token.endpoint.url`: an OAuth endpoint that returns a token for the
           client's credentials, or a `file:` URL whose content is the token.
Unsecured  without an endpoint, an unsigned token is made from the `unsecuredLogin…` options;
           brokers accept it only if they were set up for tests.
Source     org.apache.kafka.common.security.oauthbearer: OAuthBearerLoginModule, HttpJwtRetriever,
           FileJwtRetriever and OAuthBearerUnsecuredLoginCallbackHandler.
"""

import base64
import importlib
import json
import os
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kafka_rebalance.errors import ClusterError
from kafka_rebalance.group.field_paths import a_type

from .http_json import fetch_json
from .java_properties import JaasEntry, Secret, parse_jaas, parse_properties
from .tls import ssl_context

TIMEOUT_S = 5.0
"""The seconds that a cluster may take to answer."""

ENVIRONMENT = "KAFKA_REBALANCE_"

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_MECHANISMS = (*_PASSWORDS, "OAUTHBEARER")
_LOGIN_HANDLERS = ("OAuthBearerLoginCallbackHandler", "OAuthBearerUnsecuredLoginCallbackHandler")

_SETTINGS = """
security.protocol sasl.mechanism sasl.jaas.config sasl.login.callback.handler.class
sasl.oauthbearer.token.endpoint.url sasl.oauthbearer.scope
sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
ssl.endpoint.identification.algorithm ssl.enabled.protocols
ssl.truststore.location ssl.truststore.password ssl.truststore.type ssl.truststore.certificates
ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.keystore.key
ssl.keystore.certificate.chain ssl.key.password basic.auth.user.info client.id
"""
_FOLLOWED = frozenset(_SETTINGS.split())
_WITHOUT_EFFECT = (
    *("ssl.protocol", "ssl.provider", "ssl.secure.random.implementation"),
    *("ssl.keymanager.algorithm", "ssl.trustmanager.algorithm", "sasl.login.refresh."),
    *("sasl.login.retry.", "sasl.kerberos.", "sasl.oauthbearer.clock."),
    *("sasl.oauthbearer.expected.", "sasl.oauthbearer.jwks."),
)
_HINTS = {
    "sasl.mechanisms": "librdkafka's name of sasl.mechanism",
    "sasl.username": "librdkafka's; Kafka's clients take the user from sasl.jaas.config",
    "sasl.password": "librdkafka's; Kafka's clients take the password from sasl.jaas.config",
    "ssl.ca.location": "librdkafka's name of ssl.truststore.location",
    "ssl.certificate.location": "librdkafka's; Kafka's clients take ssl.keystore.location",
    "ssl.key.location": "librdkafka's; Kafka's clients take ssl.keystore.location",
}


def read_properties(path: str | Path | None) -> dict[str, str]:
    """Returns the settings of a properties file; the environment adds those that the file lacks.

    Without a path, the file that KAFKA_REBALANCE_COMMAND_CONFIG names is read, if any. The repr of
    a secret value does not show it. Errors: ClusterError, OSError.
    """
    path = path or os.environ.get(f"{ENVIRONMENT}COMMAND_CONFIG")
    found = {} if path is None else parse_properties(Path(path).read_text(encoding="latin-1"))
    for setting in sorted(_FOLLOWED - found.keys()):
        name = ENVIRONMENT + setting.upper().replace(".", "_")
        if name in os.environ:
            found[setting] = os.environ[name]
    harmless = (".location", ".type", ".mechanism", ".protocol", ".algorithm")
    return {key: value if key.endswith(harmless) else Secret(value) for key, value in found.items()}


def client_configs(
    properties: Mapping[str, str], *, timeout_s: float | None = None
) -> dict[str, Any]:
    """Returns the settings as arguments of kafka-python's KafkaAdminClient.

    `timeout_s` is how long the cluster may take for an answer; None means TIMEOUT_S.

    Errors: ClusterError with the name of the setting, and without any secret; TypeError if
    `properties` is not a mapping.
    """
    if not isinstance(properties, Mapping):
        how = "read_properties returns one"
        raise TypeError(f"properties: {a_type(properties)} is not a mapping; {how}")
    check_settings(properties)
    timeout_s = timeout_s or TIMEOUT_S
    milliseconds = int(timeout_s * 1000)
    configs: dict[str, Any] = {
        "client_id": properties.get("client.id", "kafka-rebalance"),
        "bootstrap_timeout_ms": milliseconds,
        "request_timeout_ms": milliseconds,
    }
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise ClusterError(f"security.protocol: {protocol} is not one of {', '.join(_PROTOCOLS)}")
    configs["security_protocol"] = protocol
    if protocol.endswith("SSL"):
        configs["ssl_context"] = ssl_context(properties)
    if protocol.startswith("SASL_"):
        configs.update(_sasl(properties, timeout_s))
    return configs


def check_settings(properties: Mapping[str, str]) -> None:
    """Raises ClusterError for a setting or a value that this package does not support."""
    for setting, value in properties.items():
        try:
            value.encode()
        except UnicodeEncodeError:  # a surrogate, from bytes of the environment or from an escape
            raise ClusterError(f"{setting}: has bytes that are not UTF-8") from None
        if setting in _FOLLOWED or setting.startswith(_WITHOUT_EFFECT):
            if value.startswith("${") and "config.providers" in properties:
                raise ClusterError(f"{setting}: config.providers are not supported; give the value")
        elif setting in _HINTS:
            raise ClusterError(f"{setting}: {_HINTS[setting]}")
        elif setting.startswith(("ssl.", "sasl.", "security.")):
            raise ClusterError(f"{setting}: not supported; remove it if nothing depends on it")
    handler = properties.get("sasl.login.callback.handler.class", _LOGIN_HANDLERS[0])
    if not handler.endswith(_LOGIN_HANDLERS):
        raise ClusterError(f"sasl.login.callback.handler.class: {handler} cannot run in Python")


def _sasl(properties: Mapping[str, str], timeout_s: float) -> dict[str, Any]:
    mechanism = properties.get("sasl.mechanism", "GSSAPI")  # the default in Kafka
    if mechanism not in _MECHANISMS:
        raise ClusterError(f"sasl.mechanism: {mechanism} is not one of {', '.join(_MECHANISMS)}")
    jaas = properties.get("sasl.jaas.config")
    if jaas is None and mechanism in _PASSWORDS:
        raise ClusterError("sasl.jaas.config: missing; it has the username and the password")
    entry = JaasEntry("", {}) if jaas is None else parse_jaas(jaas)
    if mechanism == "OAUTHBEARER":
        source = _token_source(properties, entry.options, timeout_s)
        oauth: Any = importlib.import_module("kafka.net.sasl.oauth")
        # kafka-python requires a subclass of its own class.
        own = {"token": lambda _: source()}
        provider = type("TokenProvider", (oauth.AbstractTokenProvider,), own)()
        return {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": provider}
    for option in ("username", "password"):
        if option not in entry.options:
            raise ClusterError(f"sasl.jaas.config: {option} is missing")
    if entry.options.get("tokenauth", "false").lower() == "true":
        raise ClusterError("sasl.jaas.config: tokenauth is not supported; give a user's password")
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": str(entry.options["username"]),
        "sasl_plain_password": entry.options["password"],
    }


# Tokens of SASL/OAUTHBEARER -----------------------------------------------------------------------

_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_CREDENTIALS = "sasl.oauthbearer.client.credentials.client."
_UNSECURED = "unsecuredLogin"
_REFUSALS = {400: "the client's credentials or the scope are refused", 401: "the client is refused"}
_LIFETIME_S = 3600.0
_RENEW = 0.8  # the part of a token's life after which it is renewed, as in Kafka


class _Token(NamedTuple):
    text: Secret
    renew_at: float  # on the monotonic clock


def _token_source(
    properties: Mapping[str, str], options: Mapping[str, str], timeout_s: float
) -> Callable[[], str]:
    """Returns a function that returns a token, and replaces an endpoint's token before it expires.

    `options` are the options of the JAAS entry. Errors: ClusterError, whose text contains no
    secret: this call raises it for bad settings, the returned function if it gets no token.
    """
    url = properties.get(_ENDPOINT)
    if url is None:
        _unsecured(options)  # raises the error for a missing option
        return lambda: _unsecured(options)
    if url.startswith("file:"):
        return lambda: _file_token(url)
    client = properties.get(_CREDENTIALS + "id", options.get("clientId"))
    secret = properties.get(_CREDENTIALS + "secret", options.get("clientSecret"))
    if client is None or secret is None:
        raise ClusterError(
            f"{_ENDPOINT}: it needs {_CREDENTIALS}id and {_CREDENTIALS}secret, or clientId and "
            "clientSecret in sasl.jaas.config"
        )
    form = {"grant_type": "client_credentials"}
    if scope := properties.get("sasl.oauthbearer.scope", options.get("scope")):
        form["scope"] = scope
    request = urllib.request.Request(url, urllib.parse.urlencode(form).encode())
    credentials = base64.b64encode(f"{client}:{secret}".encode()).decode()
    request.add_unredirected_header("Authorization", f"Basic {credentials}")
    request.add_header("Accept", "application/json")
    tls = {key: value for key, value in options.items() if key.startswith("ssl.")}
    context = ssl_context(tls) if url.startswith("https:") else None
    last: list[_Token] = []

    def token() -> str:
        if not last or last[0].renew_at <= time.monotonic():
            server = f"{_ENDPOINT}: {url}"
            answer = fetch_json(
                request, server, timeout_s=timeout_s, context=context, hints=_REFUSALS
            )
            last[:] = [_parsed(answer, url)]
        return last[0].text

    return token


def _parsed(answer: Any, url: str) -> _Token:
    if not isinstance(answer, dict) or not isinstance(answer.get("access_token"), str):
        raise ClusterError(f"{_ENDPOINT}: {url}: the answer has no access_token")
    life_s = answer.get("expires_in")
    if not isinstance(life_s, int | float):
        life_s = _LIFETIME_S
    return _Token(Secret(answer["access_token"]), time.monotonic() + _RENEW * life_s)


def _file_token(url: str) -> str:
    path = Path(urllib.request.url2pathname(urllib.parse.urlsplit(url).path))
    try:
        return Secret(path.read_text(encoding="utf-8").strip())
    except OSError as error:
        raise ClusterError(f"{_ENDPOINT}: {url}: {error.strerror}") from None


def _unsecured(options: Mapping[str, str]) -> str:
    """Returns a token (a JSON web signature) whose signature is empty."""
    principal = options.get(f"{_UNSECURED}PrincipalClaimName", "sub")
    if f"{_UNSECURED}StringClaim_{principal}" not in options:
        raise ClusterError(
            f"sasl.mechanism: OAUTHBEARER needs {_ENDPOINT}, or (for tests) "
            f"{_UNSECURED}StringClaim_{principal} in sasl.jaas.config"
        )
    # Whole seconds, rounded down: to a broker, the token must not seem to be from the future.
    now = int(time.time())
    life_s = float(options.get(f"{_UNSECURED}LifetimeSeconds", _LIFETIME_S))
    claims: dict[str, Any] = {"iat": now, "exp": now + life_s}
    for key, value in options.items():
        kind, _, claim = key.removeprefix(_UNSECURED).partition("Claim_")
        if claim and key.startswith(_UNSECURED):
            claims[claim] = _CLAIMS.get(kind, str)(value)
    parts = ({"alg": "none"}, claims)
    coded = (base64.urlsafe_b64encode(json.dumps(one).encode()) for one in parts)
    return Secret(".".join(one.decode().rstrip("=") for one in coded) + ".")


def _listed(value: str) -> list[str]:
    """Returns the items of a list such as `,a,b`, whose first character is the separator."""
    return value[1:].split(value[0]) if value else []


_CLAIMS: dict[str, Callable[[str], Any]] = {"String": str, "Number": float, "List": _listed}
