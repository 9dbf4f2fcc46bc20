"""Rejected records written out, with the bytes of the inputs: to look at, and to run again.

A data set holds no raw bytes, so the inputs are read once more. A record is known by its place and its hash.
"""

import hashlib
import json
import os
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pipeline.config import Config, ConfigError
from pipeline.files import whole_file, whole_folder
from pipeline.gamefile import record_name
from pipeline.parse import records_of
from pipeline.reasons import Reason, Status
from pipeline.report import counted
from pipeline.sources import Member, find_inputs, read_all
from pipeline.text import decode

LIST = "rejects.json"  # what each file is: no record, so that a build passes over it

Facts = dict[str, Any]
Place = tuple[str, str | None]  # source and member
Put = Callable[[str, bytes], None]

_LISTED = ("game", "source", "member", "index", "reason", "detail", "move", "offset")
_MAX_STEM = 80  # bytes of a file name that are taken from the input's
_NO_NAME = re.compile(r"[^\w-]+")
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Written:
    """The rejected records that were written to ``target``, and those that the inputs do not hold any more."""

    target: str
    written: list[Facts]
    missing: list[Facts]


def write_rejects(found: Iterable[Facts], config: Config, target: str) -> Written:
    """Write the rejected ones of ``found`` (facts of ``explain``), read again from ``config.input.paths``.

    ``target``: a folder that is not there yet or is empty, or a zip archive (.zip) that is not there yet; it appears
    whole. The file of a record that is alone in its own has the bytes of the input, others a part of the text, in
    UTF-8 or, where that would be taken for another charset, UTF-16. ``LIST`` says which is which. Nothing is written
    where nothing is rejected. Raises ConfigError for another target, OSError.
    """
    _require_free(target)
    wanted: dict[Place, list[Facts]] = defaultdict(list)
    for facts in found:
        if facts["status"] == Status.REJECTED:
            wanted[facts["source"], facts["member"]].append(facts)
    written: list[Facts] = []
    if wanted:
        with (_zip if _is_zip(target) else _folder)(target) as put:
            for facts, data in _found_again(wanted, config):
                name = _file_name(facts)
                put(name, data)
                written.append({"file": name, **{key: facts[key] for key in _LISTED}})
            put(LIST, (json.dumps(written, ensure_ascii=False, indent=1) + "\n").encode())
    return Written(target, written, [facts for rejected in wanted.values() for facts in rejected])


def facts_of(done: Written) -> Facts:
    """Return what was written as one JSON object."""
    missing = [{key: facts[key] for key in _LISTED} for facts in done.missing]
    return {"target": done.target, "written": done.written, "missing": missing}


def lines(done: Written) -> list[str]:
    """Return what was written, for people."""
    if not done.written and not done.missing:
        return ["no rejected record: nothing written"]
    text = [f"{counted(len(done.written), 'rejected record')} written to {done.target}"]
    reasons = Counter(facts["reason"] for facts in done.written)
    text += [f"  {count:>7,} {reason}" for reason, count in reasons.most_common()]
    if done.missing:
        text.append(f"{counted(len(done.missing), 'rejected record')} not in the inputs, or changed there:")
        text += [f"  {record_name(facts)}" for facts in done.missing]
    return text


def _found_again(wanted: dict[Place, list[Facts]], config: Config) -> Iterator[tuple[Facts, bytes]]:
    """Yield wanted records, in the order of the inputs, with their bytes, and take them from ``wanted``."""
    files, _ = find_inputs(config.input)
    for member in read_all(files, config.input):
        rejected = wanted.get((member.source, member.member))
        if not rejected or not isinstance(member, Member):
            continue
        for index, content, data in list(_records(member.data, rejected, config)):
            same = (facts for facts in rejected if (facts["index"], facts["content"]) == (index, content))
            if facts := next(same, None):
                rejected.remove(facts)
                yield facts, data


def _records(data: bytes, rejected: list[Facts], config: Config) -> Iterator[tuple[int, str, bytes]]:
    """Yield number, hash (hex) and bytes of the records of a file, of those among ``rejected`` at least."""
    if any(facts["reason"] == Reason.TASK_FAILED for facts in rejected):
        # Reading it has ended a process: it is one record, and its hash that of the whole file.
        yield 0, hashlib.sha256(data).digest()[:16].hex(), data
        return
    indices = {facts["index"] for facts in rejected}
    count = 0
    parts: list[tuple[int, str, bytes]] = []
    for record, part in records_of(data, config.input, config.parse, config.rules):
        count += 1
        if record.index in indices:
            parts.append((record.index, record.content.hex(), part))
    for index, content, part in parts:
        yield index, content, data if count == 1 else _encoded(part, config.input.encodings)


def _encoded(part: bytes, encodings: tuple[str, ...]) -> bytes:
    """Return a part of a text so that it is read as the same text again."""
    text = part.decode("utf-8", "replace")
    return part if decode(part, encodings)[0] == text else text.encode("utf-16")


def _file_name(facts: Facts) -> str:
    """Return a name without folders that any system can hold, and no other record has."""
    last = str(facts["member"] or facts["source"]).rpartition("/")[2].rpartition(".")[0]
    stem = _NO_NAME.sub("_", last).encode()[:_MAX_STEM].decode("utf-8", "ignore").strip("_")
    return f"{facts['reason']}-{facts['game']}{'-' if stem else ''}{stem}.sgf"


def _is_zip(target: str) -> bool:
    return target.lower().endswith(".zip")


def _require_free(target: str) -> None:
    """Raise ConfigError for a target that holds something."""
    if not os.path.lexists(target):
        return
    if _is_zip(target) or not os.path.isdir(target):
        raise ConfigError(f"{target} is there already: name a new file or folder")
    if os.listdir(target):
        raise ConfigError(f"{target} is not empty: name a new folder")


@contextmanager
def _zip(target: str) -> Iterator[Put]:
    with whole_file(target) as temporary, zipfile.ZipFile(temporary, "w") as archive:

        def put(name: str, data: bytes) -> None:
            archive.writestr(zipfile.ZipInfo(name, _ZIP_DATE), data, compress_type=zipfile.ZIP_DEFLATED)

        yield put


@contextmanager
def _folder(target: str) -> Iterator[Put]:
    with whole_folder(target) as temporary:

        def put(name: str, data: bytes) -> None:
            (temporary / name).write_bytes(data)

        yield put
