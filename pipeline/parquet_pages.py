"""The page headers of a Parquet column chunk, looked at before anything is unpacked.

A footer may say less than the pages do, and a reader allocates what the pages say: one dictionary value of
a megabyte that a thousand rows point to is a gigabyte. Headers are Thrift structs in its compact protocol
(the Parquet format, ``parquet.thrift``: PageHeader).
"""

from typing import BinaryIO, NamedTuple

_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_PLAIN = 0
# A header holds a dozen small numbers and two extreme values of a column of numbers.
_MAX_HEADER = 512
_MAX_NESTING = 3
# Thrift's compact types: the value of a flag is in its type, an int is a varint, a struct ends with type 0.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _BINARY, _STRUCT = 1, 2, 3, 4, 5, 6, 8, 12

_Struct = dict[int, "int | _Struct"]


class PageError(ValueError):
    """Pages that no shard has; the text says which and why, without the name of the file."""


class Chunk(NamedTuple):
    """A column chunk as the footer declares it, and the most that its pages may declare."""

    start: int
    stop: int
    values: int
    most_bytes: int
    plain: bool  # neither a dictionary nor an encoding: bytes unpacked are bytes in memory


def require_pages(file: BinaryIO, chunk: Chunk) -> None:
    """Walk the pages of a chunk: they must fill it exactly and hold what it declares. Raises PageError."""
    place, size, values = chunk.start, 0, 0
    while place < chunk.stop:
        file.seek(place)
        data = file.read(min(_MAX_HEADER, chunk.stop - place))
        try:
            header, length = _struct(data, 0, 0)
        except IndexError as error:
            raise PageError(f"has no page header at byte {place}") from error
        kind, unpacked, packed = (header.get(number) for number in (1, 2, 3))
        if not isinstance(unpacked, int) or not isinstance(packed, int) or unpacked < 0 or packed < 0:
            raise PageError(f"has a page without sizes at byte {place}")
        place += length + packed
        size += length + unpacked
        if place > chunk.stop or size > chunk.most_bytes:
            raise PageError(f"has pages of {size} bytes, where {chunk.most_bytes} is the most")
        if kind == _DATA_PAGE:
            values += _data_values(header, chunk.plain)
        elif kind != _DICTIONARY_PAGE or chunk.plain:
            raise PageError(f"has a page of type {kind}")
    if values != chunk.values:
        raise PageError(f"has {values} values in its pages, not {chunk.values}")


def _data_values(header: _Struct, plain: bool) -> int:
    """Return the number of values of a data page."""
    facts = header.get(5)
    values, encoding = (facts.get(1), facts.get(2)) if isinstance(facts, dict) else (None, None)
    if not isinstance(values, int) or values < 0:
        raise PageError("has a data page without a number of values")
    if plain and encoding != _PLAIN:
        raise PageError(f"has a data page with encoding {encoding}")
    return values


def _struct(data: bytes, place: int, depth: int) -> tuple[_Struct, int]:
    """Read a struct at ``place``: its numbers and structs by field number, and where it ends.

    Raises IndexError where the data end first, PageError for what a page header never has.
    """
    fields: _Struct = {}
    number = 0
    while head := data[place]:
        place += 1
        kind = head & 15
        if head >> 4:
            number += head >> 4
        else:
            number, place = _integer(data, place)
        if kind in {_TRUE, _FALSE}:
            continue
        if kind == _BYTE:
            place += 1
        elif kind in {_I16, _I32, _I64}:
            fields[number], place = _integer(data, place)
        elif kind == _BINARY:
            length, place = _varint(data, place)
            place += length
        elif kind == _STRUCT and depth < _MAX_NESTING:
            fields[number], place = _struct(data, place, depth + 1)
        else:
            raise PageError(f"has a page header with a field of type {kind}")
    return fields, place + 1


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """Read an unsigned number, seven bits a byte, the lowest first; return it and where it ends."""
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7


def _integer(data: bytes, place: int) -> tuple[int, int]:
    """Read a signed number: 0, -1, 1, -2, ... are 0, 1, 2, 3, ..."""
    value, place = _varint(data, place)
    return (value >> 1) ^ -(value & 1), place
