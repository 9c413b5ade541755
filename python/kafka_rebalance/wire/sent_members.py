# SPDX-License-Identifier: Apache-2.0
"""Makes a member from the subscription that it sent, as the leader's assignor reads it.

Sticky reads owned partitions and generation only from the user data; cooperative-sticky reads the
subscription's fields first. The `Member` holds the partitions and generations that the assignor
needs; `assignors/classic/claims.py` then reads the claims from it.

Source   ConsumerProtocol.deserializeSubscription; memberData of StickyAssignor and
         CooperativeStickyAssignor (Kafka 4.4.0).
"""

from collections.abc import Iterable

from kafka_rebalance.group.model import Member, UserData

from .consumer_protocol import (
    AssignmentData,
    Subscription,
    decode_cooperative_user_data,
    decode_sticky_user_data,
)

_NO_GENERATION = -1
_STREAMS = "stream"
_KAFKA_PYTHON_VERSION = 2
"""The number of bytes at the beginning of kafka-python's sticky user data that hold its version."""
_OF_LIBRDKAFKA = ("range", "roundrobin", "cooperative-sticky")
"""The assignors of librdkafka; an application cannot add others."""


def sent_member(
    member_id: str,
    subscription: Subscription,
    assignor: str,
    *,
    group_instance_id: str | None = None,
    client_id: str | None = None,
    client_host: str | None = None,
) -> Member:
    """Returns the member as `assignor` reads it; as in Kafka, unreadable user data are ignored.

    `assignor` is one of Kafka's assignors, or kafka-python/sticky, which reads user data that
    Kafka's class cannot read.
    """
    owned, in_user_data = subscription.owned_partitions, _NO_GENERATION
    user_data: UserData | None = None
    data = subscription.user_data
    if assignor in ("sticky", "kafka-python/sticky"):
        is_java = assignor == "sticky"
        history = decode_sticky_user_data((data or b"")[0 if is_java else _KAFKA_PYTHON_VERSION :])
        owned = history.owned_partitions
        if history.generation_id is not None:
            in_user_data = history.generation_id
        if is_java and data is not None and in_user_data == _NO_GENERATION:
            user_data = "partitions" if owned or _no_topics(data, client_id) else "none"
    elif assignor == "cooperative-sticky":
        if data is not None:
            in_user_data = decode_cooperative_user_data(data)
        if not data and subscription.version < 2:
            user_data = "none"
    elif subscription.generation_id is not None:
        in_user_data = subscription.generation_id
    generation_id = subscription.generation_id
    if subscription.version < 2 and in_user_data != _NO_GENERATION:
        generation_id = in_user_data
    as_one = in_user_data == (_NO_GENERATION if generation_id is None else generation_id)
    return Member(
        member_id,
        subscription.topics,
        group_instance_id,
        client_id,
        client_host,
        owned_partitions=owned,
        generation_id=generation_id,
        rack_id=subscription.rack_id,
        subscription_version=subscription.version,
        user_data=user_data,
        user_data_generation_id=None if as_one or user_data else in_user_data,
        client_library=client_library(subscription, assignor, client_id),
    )


def _no_topics(data: bytes, client_id: str | None) -> bool:
    """Returns whether sticky's user data list no topics; False if Kafka's class cannot read them.

    Before the first assignment, the Python clients send 0 bytes (Java sends null). For 0 bytes, the
    answer is that for the client's later data: Kafka's class can read aiokafka's data, but not
    kafka-python's.
    """
    if not data:
        return not (client_id or "").startswith("kafka-python")
    return data[:4] == bytes(4)


def client_library(subscription: Subscription, assignor: str, client_id: str | None) -> str | None:
    """Returns the library whose assignor wrote the subscription.

    The rules are the table in docs/plans.md, which `tools/sent_subscriptions.py` makes from real
    clients. "java" also stands for this project's plug-ins, which send Java's bytes. "python" is
    kafka-python's or aiokafka's own assignor. Java before 2.4 sent the same bytes as these two;
    only a default client id distinguishes them. Kafka Streams' assignor exists only in Java. For
    any other custom assignor, user data do not show the library, and None is returned.
    """
    data = subscription.user_data
    if assignor == _STREAMS:
        return "java"
    if subscription.version >= 2:
        generation_only = assignor == "cooperative-sticky" and len(data or b"") == 4
        java = data is None or generation_only or assignor == "sticky"
        if java:
            return "java"
        return "librdkafka" if assignor in _OF_LIBRDKAFKA else None
    for library in ("kafka-python", "aiokafka"):
        if (client_id or "").startswith(f"{library}-"):
            return library
    # Only one assignor of the Python libraries sends version 1: kafka-python's cooperative-sticky.
    if subscription.version == 1:
        return "kafka-python" if data == b"" and assignor == "cooperative-sticky" else "java"
    if assignor == "sticky" and data:
        history = decode_sticky_user_data(data)
        if history.generation_id not in (None, _NO_GENERATION):
            return "java"
        return "aiokafka" if history.owned_partitions or len(data) <= 8 else "kafka-python"
    return "java" if data is None else "python"


def leader_library(
    given: Iterable[AssignmentData | None], versions: Iterable[int | None]
) -> str | None:
    """Returns the library whose assignor wrote the assignments; None if there are none.

    Java writes its newest version and no user data. kafka-python and aiokafka write version 0 or 1
    and empty user data (0 bytes). librdkafka writes version 0 and copies the user data that the
    member sent, which are also empty if the member uses librdkafka. To distinguish these cases,
    `versions` holds the members' subscription versions: the leader is one of the members, and the
    Python libraries use version 0 or 1.
    """
    written = [one for one in given if one is not None]
    if not written:
        return None
    if any(one.user_data != b"" for one in written):
        return "java" if any(one.version > 0 for one in written) else "librdkafka"
    return "python" if any(version in (0, 1) for version in versions) else "librdkafka"
