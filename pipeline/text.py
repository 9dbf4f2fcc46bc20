"""Bytes of a record to text, before any grammar is applied.

In several charsets the second byte of a character may be 5B ("["), 5C (backslash) or 5D ("]"), so a
record is decoded first and tokenised afterwards. The order is: byte order mark, UTF-16 that is plain
to see, the escapes of ISO-2022-JP, strict UTF-8 or the declared charset where it decodes, UTF-8 with
lost bytes, the most plausible of the configured list, UTF-8 with replacement.

**Why moves do not depend on the guess.** Every codec of the tables here leaves an ASCII byte as it
is unless it is the second byte of a character (a test goes through all pairs). So the names of
properties, points, and ``(``, ``)`` and ``;``, which are below 40 and never second bytes, are the same
in all of them. What is left is 5D, and 5C before 5D, after a high byte. Where a property, a node, a
parenthesis or the end follows, 5D closes a value in every charset (``_CLOSING``): text is cut there
before it is decoded. Where other text follows, it closes none in any (``_OPEN``): a guessed text gets
a backslash before a bracket there. So guesses can differ in structure only where a parenthesis,
semicolon or bracket that opens neither node nor property follows such a byte; there the likelier text
decides. In UTF-8, lost bytes or not, and in a charset that is declared and decodes, nothing is guessed.
"""

import codecs
import io
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from pipeline.charsets import cheapest, is_two_byte
from pipeline.reasons import Flag

_HEADER_BYTES = 8192  # how far into the file a CA property is looked for
_SAMPLE_BYTES = 2**20  # how much of it tells damaged UTF-8 from another charset
_GUESS_BYTES = 512  # how much of it, from the first high byte on, is read in all charsets to tell which it is
_CHARSET = re.compile(rb"C(?<![A-Z]C)[a-z]*A[a-z]*\s*((?:\[[^\]\\]{0,64}\]\s*){1,4})")
_VALUE_SEPARATORS = re.compile(r"[\[\],;/\s]+")
# UTF-32 before UTF-16: the little-endian mark of the first begins with that of the second.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
_UNMARKED = ((re.compile(rb"(?:[\t\n\r ]\0)*+\(\0"), "utf-16-le"), (re.compile(rb"(?:\0[\t\n\r ])*+\0\("), "utf-16-be"))
_JIS = "iso2022_jp_ext"
# Spelling in CA (letters and digits only, lower case) to codec. Only charsets in which ASCII text is
# written as ASCII; Python knows more codecs, which transform data instead of naming its charset.
# GBK and GB2312 are read by their superset, as files that claim the smaller one often go beyond it.
_CODECS = {
    "ascii": "utf-8", "usascii": "utf-8", "ansix341968": "utf-8", "utf8": "utf-8", "unicode": "utf-8",
    "gb2312": "gb18030", "gb231280": "gb18030", "euccn": "gb18030", "gbk": "gb18030", "gb18030": "gb18030",
    "gb": "gb18030", "cp936": "gb18030", "936": "gb18030", "windows936": "gb18030", "xgbk": "gb18030",
    "big5": "cp950", "big5hkscs": "big5hkscs", "cp950": "cp950", "950": "cp950", "windows950": "cp950",
    "shiftjis": "cp932", "sjis": "cp932", "xsjis": "cp932", "mskanji": "cp932", "cp932": "cp932",
    "windows31j": "cp932", "ms932": "cp932", "932": "cp932", "eucjp": "euc_jp", "xeucjp": "euc_jp",
    "ujis": "euc_jp", "iso2022jp": _JIS, "jis": _JIS, "euckr": "cp949", "ksc5601": "cp949",
    "ksc56011987": "cp949", "cp949": "cp949", "949": "cp949", "uhc": "cp949", "windows949": "cp949",
    "koi8r": "koi8_r", "koi8u": "koi8_u", "tis620": "tis_620", "macroman": "mac_roman", "macintosh": "mac_roman",
    "latin1": "iso8859_1", "l1": "iso8859_1", "latin2": "iso8859_2", "latin9": "iso8859_15",
    **{f"iso8859{part}": f"iso8859_{part}" for part in (*range(1, 12), *range(13, 17))},
    **{f"windows{page}": f"cp{page}" for page in range(1250, 1259)},
    **{f"cp{page}": f"cp{page}" for page in (437, 850, 852, 866, *range(1250, 1259))},
}  # fmt: skip
# Charsets that Python knows and that the bytes of a readable CA rule out: two or four bytes a letter.
_WIDE = frozenset({"utf16", "utf16le", "utf16be", "utf32", "utf32le", "utf32be", "ucs2", "ucs4"})

# From the shift to two bytes a character to the shift back, which comes before the end of the line.
_SHIFTED = re.compile(r"\x1b\$[@B](?:[!-~]|\x1b(?:\$[@B]|\$\(D|\(I))*+(\x1b\([BJ])?")
# Characters of three or four bytes; those of two are met by chance in the two-byte charsets.
_WHOLE = re.compile(rb"[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
# Characters of three bytes of which some were replaced by "?" (as on the Fox server), or that were
# cut off at the end of a value.
_MENDABLE = re.compile(
    rb"[\xe0-\xef](?:[\x80-\xbf]\?|\?[\x80-\xbf]?|[\x80-\xbf]?(?=[\]\s]))|\?[\x80-\xbf]{2}|[\xc2-\xdf][\x80-\xbf]"
)
_HIGH = re.compile(rb"[\x80-\xff]")
_END_OF_SAMPLE = re.compile(rb"[\x00-\x3f]")
# A bracket that closes a value though a high byte, or a high byte and a backslash, stand before it.
_CLOSING = re.compile(
    rb"\](?:(?<=[\x80-\xff]\])|(?<=[\x80-\xff]\\\]))"
    rb"(?=\s*+(?:(?:;\s*+)?[A-Za-z]++\s*+\[|\(\s*+(?:;|[A-Z]++\s*+\[)|\)\s*+(?:[();]|\Z)|;\s*+[();]|\[[a-z]{2}:|\Z))"
)
# A bracket that closes none: what follows is neither structure nor the end.
_OPEN = re.compile(r"\](?<=[^\x00-\x7f]\])(?!\s*+(?:[A-Za-z]++\s*+\[|[\[;()]|\Z))")
_LAST_BACKSLASH = re.compile(r"\\(?<=[^\x00-\x7f]\\)\Z")


def decode(data: bytes, encodings: tuple[str, ...]) -> tuple[str, frozenset[Flag]]:
    """Decode a record; never raises, and every ASCII bracket of an ASCII-compatible text survives.

    ``encodings``: the charsets that may be guessed, the first preferred where two are as plausible;
    names that Python does not know are passed over (the configuration checks them).
    The flags tell what was doubtful: charset unknown, mismatched or guessed, bytes lost.
    """
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return _replaced(data[len(mark) :], codec)
    if b"\0" in data[:2]:
        for pattern, codec in _UNMARKED:
            if pattern.match(data):
                return _replaced(data, codec)
    if data.isascii():
        return _ascii_text(data)
    declared, flags = _declared(data)
    proven = _provable(data, declared)
    codec = proven or _likely(data, declared, encodings)
    if proven is None:
        text = _in_pieces(data, codec, "replace", _settled)
    else:
        # Python's UTF-8 decoder never takes an ASCII byte into a broken sequence: structure is safe.
        text = _strict(data, codec) or data.decode(codec, "replace")
    if "\ufffd" in text and _strict(data, codec) is None:
        flags |= {Flag.TEXT_DAMAGED}
    if codec not in declared:
        flags |= {Flag.CHARSET_MISMATCH} if declared else set()
        flags |= {Flag.CHARSET_GUESSED} if codec != "utf-8" else set()
    return text, flags


def codecs_of(encodings: Sequence[str]) -> list[str]:
    """Python's names of configured charsets; a name that is not known here stays as it is."""
    return [_CODECS.get(_letters(name), name) for name in encodings]


def _ascii_text(data: bytes) -> tuple[str, frozenset[Flag]]:
    """ASCII needs no charset, and a wrong one does no harm; only an unknown name is worth a word.

    In ISO-2022-JP all bytes are ASCII: what stands between its escapes is decoded, be it declared or not.
    """
    declared, flags = _declared(data)
    flags &= {Flag.CHARSET_UNKNOWN}
    text = data.decode("ascii")
    if "\x1b$" in text:
        text = _SHIFTED.sub(_shifted_text, text)
        flags |= {Flag.TEXT_DAMAGED} if "\x1b$" in text else set()
        flags |= {Flag.CHARSET_GUESSED} if _JIS not in declared else set()
    return text, flags


def _shifted_text(match: re.Match[str]) -> str:
    """What does not decode, or is not shifted back, stays as it is: its bytes may be structure."""
    try:
        return match[0].encode("ascii").decode(_JIS) if match[1] else match[0]
    except UnicodeError:
        return match[0]


def _replaced(data: bytes, codec: str) -> tuple[str, frozenset[Flag]]:
    try:
        return data.decode(codec), frozenset()
    except UnicodeError:
        return data.decode(codec, "replace"), frozenset({Flag.TEXT_DAMAGED})


def _declared(data: bytes) -> tuple[tuple[str, ...], frozenset[Flag]]:
    """The codecs that CA names; several values may stand in it or after it."""
    return _codecs(b"".join(match[1] for match in _CHARSET.finditer(data, 0, _HEADER_BYTES)))


@lru_cache(maxsize=256)
def _codecs(values: bytes) -> tuple[tuple[str, ...], frozenset[Flag]]:
    names = [_letters(name) for name in _VALUE_SEPARATORS.split(values.decode("ascii", "replace")) if name]
    known = tuple(dict.fromkeys(_CODECS[name] for name in names if name in _CODECS))
    if known or not names:
        return known, frozenset()
    return (), frozenset({Flag.CHARSET_UNKNOWN if _WIDE.isdisjoint(names) else Flag.CHARSET_MISMATCH})


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _provable(data: bytes, declared: tuple[str, ...]) -> str | None:
    """The charset that the bytes leave no doubt of: UTF-8, one that is declared, or UTF-8 with lost bytes."""
    fits = [codec for codec in declared if _strict(data, codec) is not None]
    two_byte = next(filter(is_two_byte, fits), None)
    if _strict(data, "utf-8") is not None:
        # Characters of two bytes alone may be what is declared by chance.
        return None if two_byte and "utf-8" not in fits and not _WHOLE.search(data) else "utf-8"
    for codec in fits:
        if codec == two_byte or _most_plausible(data, [codec]):
            return codec
    return "utf-8" if _is_damaged_utf8(data) else None


def _likely(data: bytes, declared: tuple[str, ...], encodings: tuple[str, ...]) -> str:
    """The most plausible of those declared, UTF-8 and those configured; else what at least decodes, else UTF-8."""
    fits = [codec for codec in (*declared, "utf-8") if _strict(data, codec) is not None]
    return _most_plausible(data, [*declared, *fits, *codecs_of(encodings)]) or (fits or ["utf-8"])[0]


def _most_plausible(data: bytes, candidates: list[str]) -> str | None:
    high = _HIGH.search(data)
    start = 0 if high is None else max(0, high.start() - 1)
    end = _END_OF_SAMPLE.search(data, start + _GUESS_BYTES, start + 2 * _GUESS_BYTES)
    sample = data[start : start + 2 * _GUESS_BYTES if end is None else end.start()]
    readings: dict[str, str] = {}
    for codec in candidates:
        try:
            readings.setdefault(codec, _in_pieces(sample, codec, "replace"))
        except LookupError:
            continue
    return cheapest(readings)


def _strict(data: bytes, codec: str) -> str | None:
    try:
        text = data.decode(codec)
        # Fewer brackets: some are second bytes, or were taken for second bytes.
        return text if text.count("]") == data.count(b"]") else _in_pieces(data, codec, "strict")
    except (UnicodeError, LookupError):
        return None


def _in_pieces(data: bytes, codec: str, errors: str, settled: Callable[[str], str] = str) -> str:
    """Decode what stands between the brackets that close a value in every charset."""
    text = io.StringIO(newline="")  # a list of the pieces would take thirty times the memory
    start = 0
    for match in _CLOSING.finditer(data):
        text.write(settled(data[start : match.start()].decode(codec, errors)))
        text.write("]")
        start = match.end()
    text.write(settled(data[start:].decode(codec, errors)))
    return text.getvalue()


def _settled(piece: str) -> str:
    """Between two such brackets no other one after a high byte closes a value, and no backslash escapes the last."""
    return _LAST_BACKSLASH.sub(r"\\\\", _OPEN.sub(r"\]", piece))


def _is_damaged_utf8(data: bytes) -> bool:
    """Tell UTF-8 with lost bytes from a two-byte charset.

    In the first nearly every high byte belongs to a whole character or to one of which it can be
    seen what was lost; in the second most bytes belong to neither.
    """
    rest, whole = _WHOLE.subn(b"", data[:_SAMPLE_BYTES])
    rest, mendable = _MENDABLE.subn(b"", rest)
    stray = len(_HIGH.findall(rest))
    return whole > 0 and stray * 4 <= whole + mendable
