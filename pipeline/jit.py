"""The ``kernel`` decorator: numba's compiler with a disk cache that cannot go stale.

numba's own cache notices a change in the file of a function but not in the functions it calls from
other files. The cache directory is therefore named by a hash over the source of every kernel module
and the versions of numba and Python: another source is another directory. The directory lies
under ``$NUMBA_CACHE_DIR`` or the user's cache folder, so a read-only installation works.
"""

import atexit
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np

from pipeline.files import read_report, sha256_of_file, write_report

Function = TypeVar("Function", bound=Callable[..., Any])

# A plain constant as an argument compiles a kernel once more for its value; numpy's numbers and these do not.
YES, NO = np.True_, np.False_

# Raise by hand when a kernel's output changes on purpose: it is part of a data set's fingerprint.
KERNEL_VERSION = 2

_SEAL = "sealed.json"
_NUMBERS = "rules.py"  # defines no kernel, but the numbers of rules that kernels hold


@cache
def sources_hash() -> str:
    """Return 16 hex digits over the source of every module that kernels are made of, and the compiler."""
    digest = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
    package = Path(__file__).parent
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if b"@kernel" in source or path.name == _NUMBERS:
            digest.update(path.relative_to(package).as_posix().encode() + b"\0" + source + b"\0")
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> Path:
    """Return the folder of compiled kernels, made if need be; a private temporary one as last resort."""
    name = f"kernels-{sources_hash()}"
    bases = [os.environ.get("NUMBA_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME"), "~/.cache"]
    for base in bases:
        folder = Path(base).expanduser() / "goplanes" / name if base else None
        if folder is not None and _usable(folder):
            _drop_damaged(folder)
            atexit.register(_seal_changes, folder, _compiled(folder))
            return folder
    # Never a predictable name in a shared folder: the cache holds code that is loaded as it is.
    return Path(tempfile.mkdtemp(prefix="goplanes-kernels-"))


def _usable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def seal() -> None:
    """Note the sizes and hashes of the compiled kernels, so that a file damaged later is noticed and made anew.

    numba checks neither: a cut file ends in an exception, a changed one runs.
    """
    folder = cache_folder()
    hashes = {str(path.relative_to(folder)): sha256_of_file(path) for path in _compiled(folder)}
    write_report(folder / _SEAL, {"files": hashes})


def _compiled(folder: Path) -> dict[Path, int]:
    """Return the files of compiled kernels and when each was written."""
    return {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*.nb?"))}


def _seal_changes(folder: Path, before: dict[Path, int]) -> None:
    """Seal at the end of a process that compiled something; a cache that cannot be written is left as it is."""
    with suppress(OSError):
        if _compiled(folder) != before:
            seal()


def _drop_damaged(folder: Path) -> None:
    """Remove the sealed files that are not what they were."""
    sealed = read_report(folder / _SEAL) or {"files": {}}
    for name, digest in sealed["files"].items():
        path = folder / name
        if path.is_file() and sha256_of_file(path) != digest:
            path.unlink(missing_ok=True)


def kernel(function: Function) -> Function:
    """Compile ``function`` at its first call for each set of argument types, cached on disk.

    Kernels allocate nothing: callers hand them their scratch arrays. That lets numba leave out its
    reference counting (``_nrt=False``), which otherwise takes two thirds of the time of a move. Nothing calls
    them from C, so that no wrapper for that is compiled.
    With ``NUMBA_DISABLE_JIT=1`` the plain function is returned, for debugging.
    """
    config = numba.core.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache_folder())
    try:
        # error_model="numpy": no ZeroDivisionError branches; nogil: threads of a loader run side by side.
        compiled: Function = numba.njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True, _nrt=False)(
            function
        )
    finally:
        config.CACHE_DIR = before
    return compiled
