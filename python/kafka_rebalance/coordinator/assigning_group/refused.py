# SPDX-License-Identifier: Apache-2.0
"""A request that a step refuses; the coordinator answers it with the error code."""

from kafka_rebalance.wire.error_codes import ErrorCode


class RequestRefused(ValueError):
    """Ends the handling of a request; nothing is appended."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(str(error))
        self.error = error
