"""Train a small residual network on a data set, and see whether the data set is right.

    goplanes build games.zip --scheme agz17 --output games-agz17
    python examples/train_policy.py games-agz17 --seed 1
    python examples/train_policy.py games-agz17 --seed 1 --sabotage turned

A network that has learned from a data set predicts moves of games it has not seen, far better than a rule of thumb;
one that was given a wrong data set does not, or far too well. ``--sabotage`` makes it wrong on purpose:

- ``turned``: planes are turned by a random symmetry and moves are not;
- ``wrong-side``: values are those of the other side;
- ``late``: planes are those after the move, so that they show the answer.

It needs PyTorch, and a minute or two on two cores. The last line is the result: the share of the moves of the part
``val`` (other games) that the network names first, the same for the rule of thumb (the most common reply within
distance 4 of the last move), and the share of results that it calls rightly, beside that of the more common result.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import count, pairwise

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

from pipeline import symmetry
from pipeline.augment import turn_moves
from pipeline.forms import Symmetry
from pipeline.load import Dataset, open_dataset
from pipeline.torch_data import Batch, TorchBatches

SABOTAGES = ("none", "turned", "wrong-side", "late")
LEAST_STEPS = 10  # that a schedule can be made of
NEAR = 4  # the rule of thumb looks no further from the last move
_COLUMNS = ("planes", "move", "value", "rows", "cols", "symmetry", "game", "ply")
_INVERSE = np.array(symmetry.INVERSE, dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class Settings:
    """What is trained, and on what."""

    dataset: str
    sabotage: str = "none"
    seed: int = 1
    steps: int = 600
    batch_size: int = 256
    channels: int = 32
    blocks: int = 3
    rate: float = 0.004
    held_out: int = 8192  # rows of ``val`` that are judged by
    bfloat16: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """Shares of the held-out rows: moves named first by the network and by the rule of thumb, results called rightly by
    the network and by the more common one; mean losses of the first and the last tenth of the steps."""

    moves: float
    rule_of_thumb: float
    values: float
    guess: float
    first_loss: float
    last_loss: float


class Block(nn.Module):
    """Two convolutions around which the input goes on as it is."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(x + self.inner(x))


class Network(nn.Module):
    """Planes to a score for each move (the last one is the pass) and the chance to win, as a logit."""

    def __init__(self, planes: int, frame: tuple[int, int], channels: int, blocks: int) -> None:
        super().__init__()
        area = frame[0] * frame[1]
        self.body = nn.Sequential(
            nn.Conv2d(planes, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            *(Block(channels) for _ in range(blocks)),
        )
        self.points = nn.Conv2d(channels, 1, 1)
        self.rest = nn.Sequential(
            nn.Conv2d(channels, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(2 * area, 64), nn.ReLU()
        )
        self.pass_and_value = nn.Linear(64, 2)

    def forward(self, planes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.body(planes)
        rest = self.pass_and_value(self.rest(x))
        return torch.cat([self.points(x).flatten(1), rest[:, :1]], dim=1), rest[:, 1]


class LatePlanes:
    """The planes one ply later than a row of the part has them."""

    def __init__(self, dataset: Dataset, split: str) -> None:
        batches = list(dataset.batches(split, columns=["game", "ply"], batch_size=2**16))
        self.games = np.unique(np.concatenate([batch["game"] for batch in batches]))
        places = np.concatenate([self._places(batch["game"], batch["ply"]) for batch in batches])
        self.order = np.argsort(places)
        self.places = places[self.order]
        self.rows = dataset.mapped(split, columns=["planes"], dtype="float32", cache_bytes=2**32)

    def _places(self, games: NDArray[np.uint64], plies: NDArray[np.uint16]) -> NDArray[np.int64]:
        return np.searchsorted(self.games, games) << 16 | plies

    def after(self, batch: Batch) -> Batch:
        """Return the rows of a batch (not turned) that have a next one in the part, with the planes of that one."""
        games = batch["game"].numpy().view(np.uint64)
        wanted = self._places(games, batch["ply"].numpy() + 1)
        at = np.minimum(np.searchsorted(self.places, wanted), len(self.places) - 1)
        there = np.flatnonzero(self.places[at] == wanted)
        planes = self.rows[self.order[at[there]]]["planes"]
        return {name: values[there] for name, values in batch.items()} | {"planes": torch.from_numpy(planes)}


def batches_of(settings: Settings, dataset: Dataset, split: str, epochs: Iterable[int]) -> Iterator[Batch]:
    """Yield the batches of some epochs: turned at random for training, sabotaged as asked. Raises ValueError for an
    empty part."""
    if dataset.rows(split) < settings.batch_size:
        raise ValueError(f"{dataset.folder} has {dataset.rows(split)} rows in {split}, not enough for a batch")
    late = LatePlanes(dataset, split) if settings.sabotage == "late" else None
    turns: Symmetry = "random" if settings.sabotage == "turned" or (split == "train" and late is None) else "none"
    stream = TorchBatches(
        dataset, split, batch_size=settings.batch_size, columns=_COLUMNS, dtype="float32", symmetry=turns,
        seed=settings.seed, drop_last=True,
    )  # fmt: skip
    for epoch in epochs:
        stream.set_epoch(epoch)
        for batch in DataLoader(stream, batch_size=None):
            if settings.sabotage == "turned":
                batch["move"] = _turned_back(batch, dataset.frame[1])
            elif settings.sabotage == "wrong-side" and split == "train":
                batch["value"] = -batch["value"]
            found = batch if late is None else late.after(batch)
            if len(found["move"]):
                yield found


def _turned_back(batch: Batch, frame_cols: int) -> torch.Tensor:
    """Return the moves as they were before the rows were turned: the planes stay turned."""
    moves, rows, cols, turns = (batch[name].numpy() for name in ("move", "rows", "cols", "symmetry"))
    return torch.from_numpy(turn_moves(moves, rows, cols, frame_cols, _INVERSE[turns]))


def train(settings: Settings) -> Result:
    """Train a network and judge it by rows of games that it has not seen."""
    torch.manual_seed(settings.seed)
    dataset = open_dataset(settings.dataset)
    if settings.steps < LEAST_STEPS:
        raise ValueError(f"at least {LEAST_STEPS} steps, not {settings.steps}")
    if dataset.manifest.config["augment"]["mode"] != "none":
        raise ValueError(f"{dataset.folder} has images: build one with augment.mode = none, rows are turned here")
    network = Network(len(dataset.planes), dataset.frame, settings.channels, settings.blocks)
    network.to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(network.parameters(), lr=settings.rate, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, settings.rate, settings.steps, pct_start=0.2)
    batches = batches_of(settings, dataset, "train", count())
    losses = []
    start = time.perf_counter()
    for step in range(1, settings.steps + 1):
        loss = _loss(network, next(batches), settings.bfloat16)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
        if step % 100 == 0:
            rate = step * settings.batch_size / (time.perf_counter() - start)
            print(
                f"step {step:,} of {settings.steps:,}: loss {np.mean(losses[-100:]):.3f}, {rate:,.0f} rows/s",
                flush=True,
            )
    tenth = max(1, settings.steps // 10)
    first, last = float(np.mean(losses[:tenth])), float(np.mean(losses[-tenth:]))
    moves, thumb, values, guess = judged(settings, dataset, network)
    return Result(moves, thumb, values, guess, first, last)


def _loss(network: Network, batch: Batch, bfloat16: bool) -> torch.Tensor:
    """Return the loss of the moves, and of the results that are known."""
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
        scores, logits = network(batch["planes"].contiguous(memory_format=torch.channels_last))
    known = ~batch["value"].isnan()
    chances = (batch["value"][known] + 1) / 2
    values = functional.binary_cross_entropy_with_logits(logits.float()[known], chances, reduction="sum")
    return functional.cross_entropy(scores.float(), batch["move"]) + values / len(known)


@torch.no_grad()
def judged(settings: Settings, dataset: Dataset, network: Network) -> tuple[float, float, float, float]:
    """Return the first four facts of a Result."""
    network.eval()
    rule = RuleOfThumb(dataset)
    rows = moves = thumb = known = called = won = 0
    for batch in batches_of(settings, dataset, "val", [0]):
        scores, logits = network(batch["planes"])
        rows += len(scores)
        moves += int((scores.argmax(1) == batch["move"]).sum())
        games, plies = batch["game"].numpy().view(np.uint64).tolist(), batch["ply"].tolist()
        replies = map(rule.reply, games, plies)
        thumb += sum(reply == move for reply, move in zip(replies, batch["move"].tolist(), strict=True))
        decided = batch["value"].abs() == 1
        known += int(decided.sum())
        won += int((batch["value"] == 1).sum())
        called += int(((logits > 0) == (batch["value"] > 0))[decided].sum())
        if rows >= settings.held_out:
            break
    network.train()
    return moves / rows, thumb / rows, called / max(known, 1), max(won, known - won) / max(known, 1)


class RuleOfThumb:
    """Play the most common reply near the last move, as the games of ``train`` have it, where nobody has played yet."""

    def __init__(self, dataset: Dataset) -> None:
        names = ["game", "status", "split", "board_rows", "board_cols", "moves"]
        table = pq.read_table(dataset.folder / "games.parquet", columns=names)
        table = table.filter(pc.equal(table["status"], "kept"))
        self.frame_cols = dataset.frame[1]
        self.games: dict[int, tuple[tuple[int, int], list[int]]] = {}
        counts: Counter[tuple[int, int]] = Counter()
        for game, _, split, rows, cols, moves in zip(*(table[name].to_pylist() for name in names), strict=True):
            self.games[game] = (rows, cols), moves
            if split == "train":
                counts.update(self._offsets((rows, cols), moves))
        self.replies = [offset for offset, _ in counts.most_common()]

    def _offsets(self, size: tuple[int, int], moves: list[int]) -> Iterator[tuple[int, int]]:
        """Yield how far each reply lies from the move before it, where it is near."""
        rows, cols = size
        for before, reply in pairwise(moves):
            if rows * cols not in {before, reply}:  # a pass
                down, right = reply // cols - before // cols, reply % cols - before % cols
                if max(abs(down), abs(right)) <= NEAR:
                    yield down, right

    def reply(self, game: int, ply: int) -> int | None:
        """Return the move that the rule plays before move ``ply`` of a game; None where it knows none."""
        (rows, cols), moves = self.games[game]
        if ply == 0 or moves[ply - 1] == rows * cols:
            return None
        row, col = divmod(moves[ply - 1], cols)
        taken = set(moves[:ply])
        for down, right in self.replies:
            point = row + down, col + right
            if 0 <= point[0] < rows and 0 <= point[1] < cols and point[0] * cols + point[1] not in taken:
                return point[0] * self.frame_cols + point[1]
        return None


def main() -> None:
    """Read the command line, train and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", help="a data set without images (augment.mode = none)")
    parser.add_argument("--sabotage", choices=SABOTAGES, default="none")
    parser.add_argument("--bfloat16", action="store_true", help="twice as fast on processors that compute with it")
    for name, value in (("seed", 1), ("steps", 600), ("batch-size", 256), ("channels", 32), ("blocks", 3)):
        parser.add_argument(f"--{name}", type=int, default=value, help=f"default {value}")
    try:
        result = train(Settings(**vars(parser.parse_args())))
    except (ValueError, OSError) as error:
        parser.exit(1, f"{error}\n")
    print(json.dumps({name: round(value, 4) for name, value in asdict(result).items()}))


if __name__ == "__main__":
    main()
