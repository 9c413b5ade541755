# SPDX-License-Identifier: Apache-2.0
"""librdkafka's assignors in Python, a reference for the core (docs/behaviour/librdkafka.md)."""

from . import claims, cooperative_sticky, range, round_robin, subscriptions

__all__ = ["claims", "cooperative_sticky", "range", "round_robin", "subscriptions"]
