"""Files appear whole or not at all."""

import errno
import hashlib
import os
from pathlib import Path

import pytest

from pipeline.files import (
    TEMPORARY,
    NotAFileError,
    read_report,
    remove_leftovers,
    require_file,
    sha256_of_file,
    whole_file,
    write_whole,
)


def test_bytes_and_function_write_the_file_and_leave_nothing_else(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"one")
    write_whole(tmp_path / "b", lambda path: path.write_bytes(b"two") and None)
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == {"a": b"one", "b": b"two"}


def test_an_error_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    target = tmp_path / "a"
    write_whole(target, b"old")
    seen = []

    def interrupted(temporary: Path) -> None:
        temporary.write_bytes(b"new, half")
        seen.append((temporary.parent, temporary.name.startswith(TEMPORARY), target.read_bytes()))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(target, interrupted)
    assert seen == [(tmp_path, True, b"old")]
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]
    assert target.read_bytes() == b"old"


def test_writing_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), whole_file(tmp_path / "a"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        with whole_file(tmp_path / "a") as temporary:
            temporary.write_bytes(b"half")
            os._exit(9)
    os.waitpid(child, 0)
    write_whole(tmp_path / "kept", b"")
    (tmp_path / f"{TEMPORARY}folder").mkdir()
    assert not (tmp_path / "a").exists()
    assert remove_leftovers(tmp_path) == 1
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [f"{TEMPORARY}folder", "kept"]


def test_new_files_have_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    write_whole(tmp_path / "whole", b"")
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_sha256_of_a_file_longer_than_a_piece(tmp_path: Path) -> None:
    data = bytes(range(251)) * 9000
    (tmp_path / "a").write_bytes(data)
    assert sha256_of_file(tmp_path / "a") == hashlib.sha256(data).hexdigest()


def test_what_could_wait_for_ever_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("pipe")
    require_file(tmp_path / "file")
    require_file(tmp_path)  # what a folder is told by who opens it
    for name in ("pipe", "link"):
        with pytest.raises(NotAFileError, match=f"{name}: is a pipe"):
            require_file(tmp_path / name)
    with pytest.raises(NotAFileError):
        require_file("/dev/null")
    with pytest.raises(FileNotFoundError):
        require_file(tmp_path / "nothing")
    assert read_report(tmp_path / "pipe") is None


@pytest.mark.parametrize("said", [(errno.ENOSPC, "the words of a library"), (errno.ENOSPC, "x", "TEMPORARY")])
def test_a_full_disk_names_the_file_that_was_to_be(tmp_path: Path, said: tuple[object, ...]) -> None:
    with pytest.raises(OSError, match="No space left on device") as caught, whole_file(tmp_path / "a") as temporary:
        raise OSError(*(str(temporary) if part == "TEMPORARY" else part for part in said))
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "a"))


def test_an_error_about_another_file_is_left_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(PermissionError) as caught, whole_file(tmp_path / "a"):
        raise PermissionError(errno.EACCES, "not allowed", "/elsewhere")
    assert (caught.value.filename, caught.value.strerror) == ("/elsewhere", "not allowed")
