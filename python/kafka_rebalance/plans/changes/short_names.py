# SPDX-License-Identifier: Apache-2.0
"""Names that shorten member ids: reports show them, and changes accept them.

Mirror of `is_short_name`: `src/plans/changes/made_up.rs`.
"""

from kafka_rebalance.group.model import id_text

from .made_up import UUID_AT_END, chosen_id, in_hex

_BARE_ID = 22
"""The length of a bare id, which is a UUID in base64 and nothing else."""

_MOST_LOOKED_AT = 10_000
"""The largest number of ids that `was_made_up` makes again to compare them with a name."""


def own_short_name(client_id: str | None, member_id: str) -> str | None:
    """Returns a bare id's short name: client id and 4 characters; None for other ids."""
    return f"{client_id}-{member_id[:4]}" if client_id and len(member_id) == _BARE_ID else None


def is_short_name(name: str, member_id: str) -> bool:
    """Returns whether `name` is a prefix of the member id, with at least 4 digits of its UUID."""
    uuid = UUID_AT_END.search(member_id)
    return uuid is not None and len(name) >= uuid.start() + 5 and member_id.startswith(name)


def was_made_up(name: str, group_id: str, members: int) -> bool:
    """Returns whether a plan of this group makes up the id `name`, or an id that `name` shortens.

    Compares `name` with the ids of a bounce of all members, and of a few more.
    """
    first = (chosen_id(group_id, 0, number) for number in range(min(members, _MOST_LOOKED_AT) + 10))
    written = ((in_hex(one), id_text(one)) for one in first)
    return any(
        name.endswith((f"-{one}", f"-{one[:4]}", f"-{bare[:4]}", bare)) for one, bare in written
    )
