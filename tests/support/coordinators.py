# SPDX-License-Identifier: Apache-2.0
"""Asks a coordinator without a broker around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_rebalance.coordinator.coordinator import Coordinator
from kafka_rebalance.coordinator.machine.events import Received, Respond

if TYPE_CHECKING:
    from kafka_rebalance.wire.messages import Request


def ask(coordinator: Coordinator, request: Request, version: int | None = None) -> Any:
    """Returns the response to one request, which the coordinator sends at once."""
    effects = coordinator.handle(Received(1, request, version, "c"), 0)
    (answer,) = [effect.response for effect in effects if isinstance(effect, Respond)]
    return answer
