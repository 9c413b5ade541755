# SPDX-License-Identifier: Apache-2.0
"""Requests JSON from an HTTP server; an error is one line with the reason."""

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from kafka_rebalance.errors import ClusterError

from .tls import tls_problem


def fetch_json(
    request: urllib.request.Request,
    server: str,
    path: str = "",
    *,
    timeout_s: float,
    context: ssl.SSLContext | None = None,
    hints: Mapping[int, str] | None = None,
) -> Any:
    """Returns the answer to a request. `hints` explain HTTP's status codes.

    Errors: ClusterError. Its text names the request only by `server` and `path`.
    """
    asked = f"{server}: {path}" if path else server
    try:
        with urllib.request.urlopen(request, timeout=timeout_s, context=context) as response:
            return json.loads(response.read())
    except urllib.error.HTTPError as error:
        with error:
            hint = (hints or {}).get(error.code, error.reason)
            raise ClusterError(f"{asked}: HTTP {error.code}, {hint}") from None
    except urllib.error.URLError as error:
        reason = error.reason
        problem = tls_problem(reason) if isinstance(reason, ssl.SSLError) else reason
        raise ClusterError(f"{server}: not reached: {problem}") from None
    except ssl.SSLError as error:
        raise ClusterError(f"{server}: not reached: {tls_problem(error)}") from None
    except ValueError as error:
        raise ClusterError(f"{asked}: the answer is not JSON: {error}") from None
    except (OSError, http.client.HTTPException) as error:  # the answer ends early, or is no HTTP
        problem = str(error) or type(error).__name__
        raise ClusterError(f"{server}: not reached: {problem}") from None
