"""Names of archive members whose charset is not stated, shown readably.

Zip and most older formats store a name as bytes in whatever charset its writer used. Nearly always all names of one
archive are in the same, so the first of them decide which; a name that is more plausible in another is read in that
one. A reading has to give the same bytes back: two names look alike only where they are one text in two charsets.
"""

import re
from collections.abc import Sequence
from typing import Literal

from pipeline.charsets import cheapest, is_two_byte
from pipeline.text import codecs_of

_SAMPLE_BYTES = 512  # of names, which tell the charset of an archive
_LONGEST = 1 << 14  # bytes; a longer name is refused, so that it may be read anyhow
_CONTROL = re.compile("[\x80-\x9f]")
_FIRST_OF_THREE_BYTES = "\u0800"  # shorter characters of UTF-8 are met by chance in the two-byte charsets


class Names:
    """Reads the names of one archive: first ``learn`` from some or all, in the archive's order, then ``read``.

    ``encodings``: the charsets that may be guessed, the first preferred. ``standard``: what the format says, for names
    that are no text otherwise: in cp437 (zip) every byte is a letter, in UTF-8 strange bytes stay surrogate escapes.
    """

    __slots__ = ("_codec", "_codecs", "_left", "_parts", "_standard")

    def __init__(self, encodings: Sequence[str], standard: Literal["cp437", "utf-8"]) -> None:
        self._standard = standard
        self._codecs = list(dict.fromkeys([*codecs_of(encodings), standard]))
        self._codec = "utf-8"
        self._parts: dict[bytes, None] = {}
        self._left = _SAMPLE_BYTES

    def learn(self, raw: bytes) -> None:
        """Take a name as an example. Only some 512 bytes of the first ones count, each folder once."""
        if self._left <= 0 or raw.isascii() or len(raw) > _LONGEST:
            return
        parts = [part for part in raw.split(b"/") if not part.isascii() and part not in self._parts]
        if parts:
            self._parts.update(dict.fromkeys(parts))
            self._left -= sum(map(len, parts))
            sample = b"\n".join(self._parts)
            if _exact(sample, "utf-8") is None:
                readings = {codec: _replaced(sample, codec) for codec in self._codecs}
                self._codec = cheapest({codec: text for codec, text in readings.items() if text}) or self._standard

    def read(self, raw: bytes) -> str:
        """The text of a name; never raises."""
        if raw.isascii():
            return raw.decode("ascii")
        if len(raw) > _LONGEST:
            return raw.decode(self._standard, "surrogateescape")
        settled = is_two_byte(self._codec) and _exact(raw, self._codec) is not None
        utf8 = _exact(raw, "utf-8")
        if utf8 is not None and not (settled and max(utf8) < _FIRST_OF_THREE_BYTES):
            return utf8
        readings: dict[str, str] = {}
        for codec in (self._codec, *self._codecs):
            if (is_two_byte(codec) or not settled) and (text := _exact(raw, codec)) is not None:
                readings.setdefault(codec, text)
        best = cheapest(readings)
        return raw.decode(self._standard, "surrogateescape") if best is None else readings[best]


def _exact(raw: bytes, codec: str) -> str | None:
    """The text that stands for these bytes and no others, without control characters beyond ASCII."""
    try:
        text = raw.decode(codec)
        return text if text.encode(codec) == raw and not _CONTROL.search(text) else None
    except (UnicodeError, LookupError):
        return None


def _replaced(raw: bytes, codec: str) -> str | None:
    try:
        return raw.decode(codec, "replace")
    except LookupError:
        return None
