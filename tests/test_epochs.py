"""The order of an epoch: every row once, by (seed, epoch) alone, shards mixed; equal shares for ranks."""

import hashlib
from collections import Counter
from itertools import chain, pairwise

import pytest

from pipeline import epochs
from pipeline.epochs import Cut, Epoch, epoch_of, share_of


@pytest.fixture(autouse=True)
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of ten rows, so that small shards have several."""
    monkeypatch.setattr(epochs, "BLOCK_ROWS", 10)


def places(order: Epoch, start: int, stop: int) -> list[int]:
    """Return the numbers of the rows at some places of an order."""
    found: list[int] = []
    for piece in order.pieces(start, stop):
        _, numbers = order.order(piece.buffer)
        found += numbers[piece.start : piece.stop].tolist()
    return found


SHARDS = [(), (0,), (1,), (40, 40, 21), (7, 0, 3), (100,), tuple(range(30))]


@pytest.mark.parametrize("shards", SHARDS)
@pytest.mark.parametrize("buffer_rows", [1, 15, 64, 10**6])
@pytest.mark.parametrize("seed", [None, 0, 5])
def test_every_row_once(shards: tuple[int, ...], buffer_rows: int, seed: int | None) -> None:
    order = epoch_of(shards, buffer_rows, seed, 3)
    total = sum(shards)
    assert order.rows == total
    found = places(order, 0, total)
    assert sorted(found) == list(range(total))
    if seed is None:
        assert found == list(range(total))
    for cut in range(0, total + 1, 7):
        assert places(order, 0, cut) + places(order, cut, total) == found
    assert all(sum(run.rows for run in buffer) <= buffer_rows * 1.5 + 20 for buffer in order.buffers)


def test_a_pure_function_of_seed_and_epoch() -> None:
    """Two epochs, two seeds: other orders of runs and of rows; the same ones: the same order."""
    shards = (400, 400, 210)
    orders = {(seed, epoch): epoch_of(shards, 100, seed, epoch) for seed in (1, 2) for epoch in (0, 1, 2)}
    rows = {key: tuple(places(order, 0, 1010)) for key, order in orders.items()}
    assert len(set(rows.values())) == 6
    assert len({order.buffers for order in orders.values()}) == 6
    assert len({order.buffers[0][0].shard for order in orders.values()}) > 1
    for (seed, epoch), found in rows.items():
        assert tuple(places(epoch_of(shards, 100, seed, epoch), 0, 1010)) == found


def word(purpose: str, *parts: int) -> int:
    """Return splitmix64 chained over a purpose and some numbers, in whole numbers of Python."""

    def mix(x: int) -> int:
        z = (x + 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    state = mix(int.from_bytes(hashlib.blake2b(purpose.encode(), digest_size=8).digest(), "little"))
    for part in parts:
        state = mix(state ^ part)
    return state


def test_the_order_is_written_down() -> None:
    """Runs by the word of (seed, epoch, first row), the rows of a buffer by that of (seed, epoch, row): it may not
    change between versions, since trainers resume in it."""
    for seed, epoch in ((1, 0), (1, 1), (7, 2)):
        runs = sorted([(0, 10), (10, 12), (12, 21)], key=lambda run: word("order of runs", seed, epoch, run[0]))
        # Two buffers of about 12: a run goes into the one in whose half of the 21 rows it begins.
        buffers: list[list[int]] = [[], []]
        begin = 0
        for first, stop in runs:
            buffers[2 * begin // 21] += range(first, stop)
            begin += stop - first
        expected = [
            row
            for buffer in buffers
            for row in sorted(buffer, key=lambda row: word("order of an epoch", seed, epoch, row))
        ]
        assert places(epoch_of((12, 9), 12, seed, epoch), 0, 21) == expected


def test_rows_are_mixed_evenly() -> None:
    """Any row may come anywhere: of 2,000 orders each row is first about as often as another."""
    first = Counter(places(epoch_of((30, 10), 100, 9, epoch), 0, 1)[0] for epoch in range(2000))
    assert set(first) == set(range(40))
    assert max(first.values()) < 2 * 50
    follows = sum(
        b == a + 1
        for epoch in range(200)
        for found in [places(epoch_of((30, 10), 100, 9, epoch), 0, 40)]
        for a, b in pairwise(found)
    )
    assert follows / (200 * 39) == pytest.approx(1 / 40, abs=0.01)


def test_a_buffer_mixes_shards() -> None:
    order = epoch_of((50,) * 8, 100, 4, 0)
    assert len(order.buffers) == 4
    assert all(len({run.shard for run in buffer}) >= 4 for buffer in order.buffers)
    shards_of_batches = [{number // 50 for number in places(order, start, start + 50)} for start in range(0, 400, 50)]
    assert all(len(shards) >= 4 for shards in shards_of_batches)


@pytest.mark.parametrize("rows", [0, 1, 2, 5, 100, 101])
@pytest.mark.parametrize("world", [1, 2, 3, 4, 7])
def test_equal_shares(rows: int, world: int) -> None:
    """Dropping: no row twice, the same number each, fewer than one a rank are left out. Padding: none is left out."""
    order = epoch_of((rows,), 30, 3, 0)
    drop = [places(order, *share_of(rows, rank, world, "drop")) for rank in range(world)]
    assert {len(share) for share in drop} == {rows // world}
    assert all(count == 1 for count in Counter(chain(*drop)).values())
    pad = [places(order, *share_of(rows, rank, world, "pad")) for rank in range(world)]
    assert {len(share) for share in pad} == {-(-rows // world)}
    counts = Counter(chain(*pad))
    assert set(counts) == set(range(rows))
    assert sum(counts.values()) - rows == -(-rows // world) * world - rows
    if rows >= world:
        assert sum(count == 2 for count in counts.values()) == -(-rows // world) * world - rows


def test_wrong_shares_and_cuts() -> None:
    for rank, world in ((1, 1), (0, 0)):
        with pytest.raises(ValueError, match=f"rank {rank} of {world}"):
            Cut(8, rank=rank, world=world)
    with pytest.raises(ValueError, match="rank must be at least 0, not -1"):
        Cut(8, rank=-1, world=2)
    with pytest.raises(ValueError, match=r"batch_size must be a whole number, not 8\.0"):
        Cut(8.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="tail must be drop or pad, not 'keep'"):
        share_of(9, 0, 1, "keep")  # type: ignore[arg-type]
    for name in ("batch_size", "step"):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, not 0"):
            Cut(**{"batch_size": 8, name: 0})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="start must be at least 0, not -1"):
        Cut(8, start=-1)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 15, 16, 17, 100])
def test_batches_cut_a_share(rows: int, drop_last: bool) -> None:
    """Whatever the steps, all batches are met once, and only the last is short."""
    for world in (1, 2, 3):
        for rank in range(world):
            whole = list(Cut(16, rank, world, drop_last=drop_last).spans(rows))
            low, high = share_of(rows, rank, world, "drop")
            ends = [low, *(stop for _, stop in whole)]
            assert [start for start, _ in whole] == ends[:-1]
            assert ends[-1] == (high if not drop_last else low + (high - low) // 16 * 16)
            assert all(stop - start == 16 for start, stop in whole[: None if drop_last else -1])
            assert len(whole) == Cut(16, rank, world, drop_last=drop_last).count(rows)
            for start in (0, 1, 3):
                for step in (1, 2, 5):
                    steps = [
                        list(Cut(16, rank, world, "drop", drop_last, start + first, step).spans(rows))
                        for first in range(step)
                    ]
                    assert sorted(chain(*steps)) == whole[start:]


def test_numbers_follow_the_runs() -> None:
    order = epoch_of((12, 9), 1000, 8, 0)
    (buffer,) = order.buffers
    assert sorted(buffer) == [(0, 0, 10, 0), (0, 10, 12, 10), (1, 0, 9, 12)]
    expected = [run.first + place for run in buffer for place in range(run.rows)]
    places, numbers = order.order(0)
    assert sorted(places.tolist()) == list(range(21))
    assert [expected[place] for place in places.tolist()] == numbers.tolist()
