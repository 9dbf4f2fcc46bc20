"""Random 64-bit words from a written-down generator: splitmix64 (Steele, Lea and Flood, 2014).

Keys, splits, samples and shuffles are all drawn from ``mix``, never from numpy's streams, which
may change between versions. A word for several values is a chain: ``mix(mix(seed ^ a) ^ b)``.
"""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.jit import kernel

Words = NDArray[np.uint64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_S30 = np.uint64(30)
_S27 = np.uint64(27)
_S31 = np.uint64(31)


def mix_words(x: Any) -> Any:
    """Return splitmix64's next output for each state ``x`` (uint64 array; wraps modulo 2**64)."""
    z = x + GOLDEN
    z = (z ^ (z >> _S30)) * _M1
    z = (z ^ (z >> _S27)) * _M2
    return z ^ (z >> _S31)


@kernel
def mix(x):
    """Return splitmix64's next output for the state ``x`` (one uint64)."""
    z = x + GOLDEN
    z = (z ^ (z >> _S30)) * _M1
    z = (z ^ (z >> _S27)) * _M2
    return z ^ (z >> _S31)


def seed_word(purpose: str, seed: int = 0) -> np.uint64:
    """Return the start word of one purpose ("split", "shuffle", ...), so that no two share a stream."""
    digest = hashlib.blake2b(purpose.encode(), digest_size=8).digest()
    word = np.array([int.from_bytes(digest, "little")], dtype=np.uint64)
    mixed: np.uint64 = mix_words(mix_words(word) ^ np.uint64(seed))[0]
    return mixed


def chain_words(start: np.uint64, *parts: NDArray[Any] | int) -> Words:
    """Return ``mix(... mix(start ^ part0) ^ part1 ...)``, element by element (uint64)."""
    words: Words = np.atleast_1d(np.asarray(start, dtype=np.uint64))
    for part in parts:
        words = mix_words(words ^ np.asarray(part).astype(np.uint64))
    return words


def repeated(keys: Words) -> NDArray[np.bool_]:
    """Return bool[N]: which keys occur more than once."""
    order = np.argsort(keys)
    same = keys[order][1:] == keys[order][:-1]
    many = np.zeros(len(keys), dtype=np.bool_)
    many[order] = np.append(same, False)[: len(keys)] | np.append(False, same)[: len(keys)]
    return many
