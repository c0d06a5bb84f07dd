"""Protobuf messages byte by byte: nothing here knows a schema, so that what the server makes of one is its own."""

from __future__ import annotations

import struct


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def message(*fields: tuple[int, bool | int | float | str | bytes]) -> bytes:
    """A message of fields by number: whole numbers and booleans, doubles, texts, and messages as bytes."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += _varint(number << 3) + _varint(int(value))
        elif isinstance(value, float):
            out += _varint(number << 3 | 1) + struct.pack("<d", value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += _varint(number << 3 | 2) + _varint(len(data)) + data
    return out


def parse(data: bytes) -> dict[int, list]:
    """The values of each field of a message, by number: numbers, and bytes of texts and messages."""

    def varint() -> int:
        nonlocal at
        number = shift = 0
        while True:
            byte = data[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    at, found = 0, {}
    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            value = varint()
        elif tag & 7 == 1:
            (value,), at = struct.unpack_from("<d", data, at), at + 8
        else:
            assert tag & 7 == 2, f"wire type {tag & 7}"
            length = varint()
            value, at = data[at : at + length], at + length
            assert len(value) == length
        found.setdefault(tag >> 3, []).append(value)
    return found
