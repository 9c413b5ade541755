# SPDX-License-Identifier: Apache-2.0
"""Gets the tokens of SASL/OAUTHBEARER as Kafka's own login modules do.

Endpoint   `sasl.oauthbearer.token.endpoint.url`: an OAuth endpoint that returns a token for the
           client's credentials, or a `file:` URL whose content is the token.
Unsecured  without an endpoint, an unsigned token is made from the `unsecuredLogin…` options;
           brokers accept it only if they were set up for tests.
Source     org.apache.kafka.common.security.oauthbearer: OAuthBearerLoginModule, HttpJwtRetriever,
           FileJwtRetriever and OAuthBearerUnsecuredLoginCallbackHandler.
"""

import base64
import json
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kafka_rebalance.errors import ClusterError

from .http_json import fetch_json
from .java_properties import Secret
from .tls import ssl_context

_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_CREDENTIALS = "sasl.oauthbearer.client.credentials.client."
_UNSECURED = "unsecuredLogin"
_HINTS = {400: "the client's credentials or the scope are refused", 401: "the client is refused"}
_LIFETIME_S = 3600.0
_RENEW = 0.8  # the part of a token's life after which it is renewed, as in Kafka


class _Token(NamedTuple):
    text: Secret
    renew_at: float  # on the monotonic clock


def token_source(
    properties: Mapping[str, str], options: Mapping[str, str], timeout_s: float
) -> Callable[[], str]:
    """Returns a function that returns a token, and replaces an endpoint's token before it expires.

    `options` are the options of the JAAS entry. Errors: ClusterError, whose text contains no
    secret: this call raises it for bad settings, the returned function if it gets no token.
    """
    url = properties.get(_ENDPOINT)
    if url is None:
        _unsecured(options)  # raises the error of a missing option
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
            answer = fetch_json(request, server, timeout_s=timeout_s, context=context, hints=_HINTS)
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
