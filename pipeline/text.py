"""Bytes of a record to text, before any grammar is applied.

In several charsets the second byte of a character may be 5C (backslash) or 5D (closing bracket), so
a record is decoded first and tokenised afterwards. The order is: byte order mark, the declared
charset where it decodes, strict UTF-8, UTF-8 with lost bytes, the configured list, replacement.
"""

import codecs
import re

from pipeline.reasons import Flag

_HEADER_BYTES = 8192  # how far into the file a CA property is looked for
_SAMPLE_BYTES = 2**20  # how much of it tells damaged UTF-8 from another charset
_CHARSET = re.compile(rb"(?<![A-Z])C[a-z]*A[a-z]*\s*((?:\[[^\]\\]{0,64}\]\s*){1,4})")
_VALUE_SEPARATORS = re.compile(r"[\[\],;/\s]+")
# UTF-32 before UTF-16: the little-endian mark of the first begins with that of the second.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Spelling in CA (letters and digits only, lower case) to codec. Only charsets in which ASCII text is
# written as ASCII; Python knows more codecs, which transform data instead of naming its charset.
# GBK and GB2312 are read by their superset, as files that claim the smaller one often go beyond it.
_CODECS = {
    "ascii": "utf-8", "usascii": "utf-8", "ansix341968": "utf-8", "utf8": "utf-8", "unicode": "utf-8",
    "gb2312": "gb18030", "gb231280": "gb18030", "euccn": "gb18030", "gbk": "gb18030", "gb18030": "gb18030",
    "gb": "gb18030", "cp936": "gb18030", "936": "gb18030", "windows936": "gb18030", "xgbk": "gb18030",
    "big5": "big5", "big5hkscs": "big5hkscs", "cp950": "cp950", "950": "cp950", "windows950": "cp950",
    "shiftjis": "cp932", "sjis": "cp932", "xsjis": "cp932", "mskanji": "cp932", "cp932": "cp932",
    "windows31j": "cp932", "ms932": "cp932", "932": "cp932", "eucjp": "euc_jp", "xeucjp": "euc_jp",
    "ujis": "euc_jp", "iso2022jp": "iso2022_jp", "jis": "iso2022_jp", "euckr": "cp949", "ksc5601": "cp949",
    "ksc56011987": "cp949", "cp949": "cp949", "949": "cp949", "uhc": "cp949", "windows949": "cp949",
    "koi8r": "koi8_r", "koi8u": "koi8_u", "tis620": "tis_620", "macroman": "mac_roman", "macintosh": "mac_roman",
    "latin1": "iso8859_1", "l1": "iso8859_1", "latin2": "iso8859_2", "latin9": "iso8859_15",
    **{f"iso8859{part}": f"iso8859_{part}" for part in (*range(1, 12), *range(13, 17))},
    **{f"windows{page}": f"cp{page}" for page in range(1250, 1259)},
    **{f"cp{page}": f"cp{page}" for page in (437, 850, 852, 866, *range(1250, 1259))},
}  # fmt: skip
# Charsets that Python knows and that the bytes of a readable CA rule out: two or four bytes a letter.
_WIDE = frozenset({"utf16", "utf16le", "utf16be", "utf32", "utf32le", "utf32be", "ucs2", "ucs4"})

# Characters of three or four bytes; those of two are met by chance in the two-byte charsets.
_WHOLE = re.compile(rb"[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
# Characters of three bytes of which some were replaced by "?" (as on the Fox server), or that were
# cut off at the end of a value.
_MENDABLE = re.compile(
    rb"[\xe0-\xef](?:[\x80-\xbf]\?|\?[\x80-\xbf]?|[\x80-\xbf]?(?=[\]\s]))|\?[\x80-\xbf]{2}|[\xc2-\xdf][\x80-\xbf]"
)
_HIGH = re.compile(rb"[\x80-\xff]")


def decode(data: bytes, encodings: tuple[str, ...]) -> tuple[str, frozenset[Flag]]:
    """Decode a record; never raises, and every ASCII bracket of an ASCII-compatible text survives.

    ``encodings`` are tried in order where the bytes are neither in the declared charset nor UTF-8;
    names that Python does not know are passed over (the configuration checks them).
    The flags tell what was doubtful: charset unknown, mismatched or guessed, bytes lost.
    """
    if data.isascii():
        return data.decode("ascii"), _flags_of_ascii(data)
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return _wide_text(data[len(mark) :], codec)
    data = data.removeprefix(codecs.BOM_UTF8)
    declared, flags = _declared(data)
    if declared is not None:
        text = _strict(data, declared)
        if text is not None:
            return text, frozenset(flags)
        flags.add(Flag.CHARSET_MISMATCH)
    text = _strict(data, "utf-8")
    if text is not None:
        return text, frozenset(flags)
    if not _is_damaged_utf8(data):
        for encoding in encodings:
            text = _strict(data, encoding)
            if text is not None:
                return text, frozenset(flags | {Flag.CHARSET_GUESSED})
    # Python's UTF-8 decoder never takes an ASCII byte into a broken sequence: structure is safe.
    return data.decode("utf-8", "replace"), frozenset(flags | {Flag.TEXT_DAMAGED})


def _flags_of_ascii(data: bytes) -> frozenset[Flag]:
    """ASCII needs no charset, and a wrong one does no harm; only an unknown name is worth a word."""
    return frozenset(_declared(data)[1] & {Flag.CHARSET_UNKNOWN})


def _wide_text(data: bytes, codec: str) -> tuple[str, frozenset[Flag]]:
    text = _strict(data, codec)
    if text is not None:
        return text, frozenset()
    return data.decode(codec, "replace"), frozenset({Flag.TEXT_DAMAGED})


def _declared(data: bytes) -> tuple[str | None, set[Flag]]:
    """The codec for the first usable value of CA; several values may stand in it or after it."""
    names = [
        name
        for match in _CHARSET.finditer(data, 0, _HEADER_BYTES)
        for name in _VALUE_SEPARATORS.split(match.group(1).decode("ascii", "replace"))
        if name
    ]
    mismatch = False
    for name in names:
        letters = re.sub(r"[^a-z0-9]", "", name.lower())
        if letters in _CODECS:
            return _CODECS[letters], set()
        mismatch = mismatch or letters in _WIDE
    if not names:
        return None, set()
    return None, {Flag.CHARSET_MISMATCH if mismatch else Flag.CHARSET_UNKNOWN}


def _strict(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeError, LookupError):
        return None


def _is_damaged_utf8(data: bytes) -> bool:
    """Tell UTF-8 with lost bytes from a two-byte charset.

    In the first nearly every high byte belongs to a whole character or to one of which it can be
    seen what was lost; in the second most bytes belong to neither.
    """
    rest, whole = _WHOLE.subn(b"", data[:_SAMPLE_BYTES])
    rest, mendable = _MENDABLE.subn(b"", rest)
    stray = len(_HIGH.findall(rest))
    return whole > 0 and stray * 4 <= whole + mendable
