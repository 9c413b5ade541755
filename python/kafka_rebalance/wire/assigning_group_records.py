# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the records of groups whose brokers assign, of all three kinds.

    consumer groups   types 3 to 8, and 16   `consumer_group_records.py`
    share groups      types 10 to 15         `share_group_records.py`
    streams groups    types 17 to 23         `streams_group_records.py`

Errors   WireError, which names the field.
"""

from .consumer_group_records import ConsumerGroupRecord, decode_record, encode_record
from .share_group_records import ShareGroupRecord, decode_share_record, encode_share_record
from .streams_group_records import StreamsGroupRecord, decode_streams_record, encode_streams_record

AssigningRecord = ConsumerGroupRecord | ShareGroupRecord | StreamsGroupRecord


def decode_any(key: bytes, value: bytes | None) -> AssigningRecord | None:
    """Reads a record; returns None if no such group has its type. Errors: WireError."""
    return (
        decode_record(key, value)
        or decode_share_record(key, value)
        or decode_streams_record(key, value)
    )


def encode_any(record: AssigningRecord) -> tuple[bytes, bytes | None]:
    """Returns the bytes of a record's key and value."""
    match record:
        case ConsumerGroupRecord():
            return encode_record(record)
        case ShareGroupRecord():
            return encode_share_record(record)
        case StreamsGroupRecord():
            return encode_streams_record(record)
