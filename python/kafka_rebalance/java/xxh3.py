# SPDX-License-Identifier: Apache-2.0
"""The 64-bit hash XXH3 with seed 0, as Kafka's brokers compute it over the metadata of topics.

    bytes      each lane is a little-endian number; a product of 128 bits is folded to 64 bits
    0 to 16    one formula for each range of lengths
    to 240     pairs of lanes from both ends, each mixed with its own bytes of the secret
    more       stripes of 64 bytes go into 8 accumulators; after each block, those are scrambled

>>> xxh3(b"") == 0x2D06800538D394C2
True

Source   the specification of XXH3 (xxHash 0.8); hash4j's Hashing.xxh3_64, which Kafka 4.4.0 uses.
"""

import struct

_M = (1 << 64) - 1
_P32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_P64 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPES = (192 - 64) // 8  # stripes of a block


def xxh3(data: bytes) -> int:
    """Returns the hash as an unsigned 64-bit number."""
    size = len(data)
    if size <= 16:
        return _short(data)
    if size <= 240:
        return _middle(data)
    return _long(data)


def _lane(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _fold(a: int, b: int) -> int:
    product = a * b
    return product & _M ^ product >> 64


def _avalanche(h: int) -> int:
    h = (h ^ h >> 37) * 0x165667919E3779F9 & _M
    return h ^ h >> 32


def _short(data: bytes) -> int:
    size = len(data)
    if size > 8:
        low = _lane(data, 0) ^ _lane(_SECRET, 24) ^ _lane(_SECRET, 32)
        high = _lane(data, size - 8) ^ _lane(_SECRET, 40) ^ _lane(_SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche(size + swapped + high + _fold(low, high) & _M)
    if size >= 4:
        h = _word(data, size - 4) + (_word(data, 0) << 32)
        h ^= _lane(_SECRET, 8) ^ _lane(_SECRET, 16)
        h ^= (h << 49 | h >> 15) & _M ^ (h << 24 | h >> 40) & _M
        h = h * 0x9FB21C651E98DF25 & _M
        h ^= (h >> 35) + size
        h = h * 0x9FB21C651E98DF25 & _M
        return h ^ h >> 28
    if size:
        h = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        return _xxh64_avalanche(h ^ _word(_SECRET, 0) ^ _word(_SECRET, 4))
    return _xxh64_avalanche(_lane(_SECRET, 56) ^ _lane(_SECRET, 64))


def _xxh64_avalanche(h: int) -> int:
    h = (h ^ h >> 33) * _P64[1] & _M
    h = (h ^ h >> 29) * _P64[2] & _M
    return h ^ h >> 32


def _mix(data: bytes, at: int, secret: int) -> int:
    return _fold(
        _lane(data, at) ^ _lane(_SECRET, secret), _lane(data, at + 8) ^ _lane(_SECRET, secret + 8)
    )


def _middle(data: bytes) -> int:
    size = len(data)
    h = size * _P64[0] & _M
    if size <= 128:
        for i in reversed(range((size - 1) // 32 + 1)):
            h += _mix(data, 16 * i, 32 * i) + _mix(data, size - 16 * (i + 1), 32 * i + 16)
        return _avalanche(h & _M)
    for i in range(8):
        h += _mix(data, 16 * i, 16 * i)
    h = _avalanche(h & _M)
    for i in range(8, size // 16):
        h += _mix(data, 16 * i, 16 * (i - 8) + 3)
    return _avalanche(h + _mix(data, size - 16, 136 - 17) & _M)


def _long(data: bytes) -> int:
    size = len(data)
    sums = [_P32[2], *_P64[:4], _P32[1], _P64[4], _P32[0]]
    for stripe in range((size - 1) // 64):
        _accumulate(sums, data, 64 * stripe, 8 * (stripe % _STRIPES))
        if stripe % _STRIPES == _STRIPES - 1:
            for i in range(8):
                lane = sums[i]
                sums[i] = (lane ^ lane >> 47 ^ _lane(_SECRET, 128 + 8 * i)) * _P32[0] & _M
    _accumulate(sums, data, size - 64, 192 - 64 - 7)
    h = size * _P64[0]
    for i in range(4):
        at = 11 + 16 * i
        h += _fold(sums[2 * i] ^ _lane(_SECRET, at), sums[2 * i + 1] ^ _lane(_SECRET, at + 8))
    return _avalanche(h & _M)


def _accumulate(sums: list[int], data: bytes, at: int, secret: int) -> None:
    lanes = struct.unpack_from("<8Q", data, at)
    keys = struct.unpack_from("<8Q", _SECRET, secret)
    for i in range(8):
        keyed = lanes[i] ^ keys[i]
        sums[i ^ 1] = sums[i ^ 1] + lanes[i] & _M
        sums[i] = sums[i] + (keyed & 0xFFFFFFFF) * (keyed >> 32) & _M
