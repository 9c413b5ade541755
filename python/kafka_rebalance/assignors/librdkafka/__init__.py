# SPDX-License-Identifier: Apache-2.0
"""The assignors of librdkafka (confluent-kafka and others) in plain Python, written to be read.

Docs     docs/behaviour/librdkafka.md
"""

from . import claims, cooperative_sticky, range, round_robin, subscriptions

__all__ = ["claims", "cooperative_sticky", "range", "round_robin", "subscriptions"]
