# SPDX-License-Identifier: Apache-2.0
"""The fields of a heartbeat: which values keep a field as it is, and which texts are refused.

Source   Utils.throwIfEmptyString, GroupCoordinatorService.throwIf…HeartbeatRequestIsInvalid (Kafka
         4.4.0).
"""

UNCHANGED_MS = -1
"""The rebalance timeout of a request that keeps the member's; the other fields are then None."""

_BLANK = "".join(map(chr, range(33)))  # the characters that Java's `String.trim` removes


def is_blank(text: str | None) -> bool:
    """Returns whether a text is there, but is empty for Java's `String.trim`."""
    return text is not None and not text.strip(_BLANK)
