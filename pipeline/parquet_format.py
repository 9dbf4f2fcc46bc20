"""Parquet's own words, read before the library reads them: the footer and the page headers.

Two reasons. A reader allocates what pages say, whatever the footer says: one dictionary value of a megabyte
that a thousand rows point to is a gigabyte. And pyarrow ends the process on some footers when it is asked
about a column chunk. Both are Thrift structs in its compact protocol (the Parquet format, ``parquet.thrift``:
FileMetaData, PageHeader).
"""

from functools import lru_cache
from typing import Any, BinaryIO, NamedTuple

_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_PLAIN = 0
# A page header holds a dozen small numbers and two extreme values of a column of numbers.
_MAX_HEADER = 512
_MAX_NESTING = 12
_SMALL_FOOTER = 64 * 1024
# Thrift's compact types: the value of a flag is in its type, an int is a varint, a struct ends with type 0.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12

# Which fields to keep, by number; a nested table is a struct or a list of structs. The rest is skipped.
_Wanted = dict[int, "_Wanted"]
_FOOTER: _Wanted = {3: {}, 4: {1: {1: {}, 3: {3: {}, 5: {}, 6: {}, 7: {}, 9: {}, 11: {}}, 8: {}}, 3: {}}}
_PAGE: _Wanted = {1: {}, 2: {}, 3: {}, 5: {1: {}, 2: {}}}


class FormatError(ValueError):
    """What no shard has; the text says what and why, without the name of the file."""


class ChunkFacts(NamedTuple):
    """What a footer says of a column chunk: where its pages lie, and what is in them."""

    name: str
    start: int
    stop: int
    values: int
    unpacked: int
    elsewhere: bool  # in another file, or encrypted


class GroupFacts(NamedTuple):
    """What a footer says of a row group."""

    rows: int
    chunks: tuple[ChunkFacts, ...]


def read_footer(data: bytes) -> tuple[int, tuple[GroupFacts, ...]]:
    """Return the number of rows and the row groups of a footer. Raises FormatError."""
    # A loader comes back to a shard for each of its row groups: the same bytes are read once, unless they are many.
    return _read_once(data) if len(data) <= _SMALL_FOOTER else _read_footer(data)


@lru_cache(maxsize=128)
def _read_once(data: bytes) -> tuple[int, tuple[GroupFacts, ...]]:
    return _read_footer(data)


def _read_footer(data: bytes) -> tuple[int, tuple[GroupFacts, ...]]:
    try:
        fields, _ = _struct(data, 0, _FOOTER, 0)
        groups = tuple(
            GroupFacts(_number(group, 3), tuple(_chunk(chunk) for chunk in group.get(1, ())))
            for group in fields.get(4, ())
        )
        return _number(fields, 3), groups
    except (IndexError, TypeError, AttributeError) as error:
        raise FormatError("has a damaged footer") from error


def require_pages(file: BinaryIO, chunk: ChunkFacts, most_bytes: int, plain: bool) -> None:
    """Walk the pages of a chunk: they must fill it exactly and hold what it declares.

    ``most_bytes``: the most that they may unpack to; ``plain``: neither a dictionary nor an encoding is
    allowed, so that bytes unpacked are bytes in memory. Raises FormatError.
    """
    place, size, values = chunk.start, 0, 0
    while place < chunk.stop:
        file.seek(place)
        try:
            header, length = _struct(file.read(min(_MAX_HEADER, chunk.stop - place)), 0, _PAGE, 0)
            unpacked, packed = _number(header, 2), _number(header, 3)
        except (IndexError, TypeError) as error:
            raise FormatError(f"has no page header at byte {place}") from error
        place += length + packed
        size += length + unpacked
        if unpacked < 0 or packed < 0 or place > chunk.stop or size > most_bytes:
            raise FormatError(f"has pages of {size} bytes, where {most_bytes} is the most")
        kind = header.get(1)
        if kind == _DATA_PAGE:
            values += _data_values(header, plain)
        elif kind != _DICTIONARY_PAGE or plain:
            raise FormatError(f"has a page of type {kind}")
    if values != chunk.values:
        raise FormatError(f"has {values} values in its pages, not {chunk.values}")


def _chunk(fields: dict[int, Any]) -> ChunkFacts:
    facts = fields.get(3, {})
    start = _number(facts, 9)
    # Number 0 is how some writers say that there is no dictionary.
    if 0 < facts.get(11, 0) < start:
        start = _number(facts, 11)
    name = b".".join(facts.get(3, ())).decode(errors="replace")
    stop = start + _number(facts, 7)
    return ChunkFacts(name, start, stop, _number(facts, 5), _number(facts, 6), elsewhere=1 in fields or 8 in fields)


def _number(fields: dict[int, Any], number: int) -> int:
    """Return a field that must be there and be a number. Raises TypeError."""
    value = fields.get(number)
    if not isinstance(value, int):
        raise TypeError(number)
    return value


def _data_values(header: dict[int, Any], plain: bool) -> int:
    """Return the number of values of a data page."""
    facts = header.get(5)
    values, encoding = (facts.get(1), facts.get(2)) if isinstance(facts, dict) else (None, None)
    if not isinstance(values, int) or values < 0:
        raise FormatError("has a data page without a number of values")
    if plain and encoding != _PLAIN:
        raise FormatError(f"has a data page with encoding {encoding}")
    return values


def _struct(data: bytes, place: int, wanted: _Wanted, depth: int) -> tuple[dict[int, Any], int]:
    """Read a struct at ``place``: its wanted fields by number, and where it ends.

    Raises IndexError where the data end first, FormatError for what the two kinds of structs never have.
    """
    fields: dict[int, Any] = {}
    number = 0
    while head := data[place]:
        place += 1
        if head >> 4:
            number += head >> 4
        else:
            number, place = _integer(data, place)
        value, place = _value(data, place, head & 15, wanted.get(number), depth)
        if number in wanted:
            fields[number] = value
    return fields, place + 1


def _value(data: bytes, place: int, kind: int, wanted: _Wanted | None, depth: int) -> tuple[Any, int]:
    """Read one value; it is None unless it is wanted."""
    if kind in {_TRUE, _FALSE}:
        return None, place
    if kind in {_BYTE, _DOUBLE}:
        return None, place + (1 if kind == _BYTE else 8)
    if kind in {_I16, _I32, _I64}:
        return _integer(data, place)
    if kind == _BINARY:
        length, place = _varint(data, place)
        return None if wanted is None else data[place : place + length], place + length
    if depth == _MAX_NESTING:
        raise FormatError("nests its structs too deep")
    if kind == _STRUCT:
        return _struct(data, place, wanted or {}, depth + 1)
    if kind in {_LIST, _SET}:
        return _list(data, place, wanted, depth + 1)
    raise FormatError(f"has a field of type {kind}")


def _list(data: bytes, place: int, wanted: _Wanted | None, depth: int) -> tuple[Any, int]:
    head = data[place]
    length, kind = head >> 4, head & 15
    place += 1
    if length == 15:
        length, place = _varint(data, place)
    items = []
    # Every item has a byte at least: a list that says more than there are bytes is not begun.
    if length > len(data) - place:
        raise IndexError(length)
    for _ in range(length):
        if kind in {_TRUE, _FALSE}:
            item, place = None, place + 1
        else:
            item, place = _value(data, place, kind, wanted, depth)
        if wanted is not None:
            items.append(item)
    return items, place


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
        if shift > 63:
            raise FormatError("has a number of more than 64 bits")


def _integer(data: bytes, place: int) -> tuple[int, int]:
    """Read a signed number: 0, -1, 1, -2, ... are 0, 1, 2, 3, ..."""
    value, place = _varint(data, place)
    return (value >> 1) ^ -(value & 1), place
