"""``games.parquet`` of a finished data set: opened with care, and the games in it found."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipeline.archives import printable
from pipeline.columns import ShardError
from pipeline.files import NotAFileError, require_file
from pipeline.load import Dataset
from pipeline.manifest import GAMES
from pipeline.table import SCHEMA, games_of, row_fault

_BATCH = 4096  # records in memory at a time
_NUMBERS = ("komi", "margin")
_NEVER_NULL = ("game", "source", "index", "content", "status")


@contextmanager
def _faults(dataset: Dataset) -> Iterator[None]:
    """Turn what pyarrow says of a damaged file into a ShardError with its path."""
    try:
        yield
    except FileNotFoundError:
        raise ShardError(f"{dataset.folder / GAMES}: is missing") from None
    except NotAFileError as error:
        raise ShardError(str(error)) from None
    except pa.ArrowException as error:
        raise ShardError(f"{dataset.folder / GAMES}: cannot be read ({str(error)[:200]})") from None


def _opened(path: Path) -> pq.ParquetFile:
    require_file(path)
    return pq.ParquetFile(path)


def batches(dataset: Dataset, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """Yield the game table in its order, some thousand records at a time. Raises ShardError where it is not one."""
    path = dataset.folder / GAMES
    with _faults(dataset), _opened(path) as file:
        if not file.schema_arrow.equals(SCHEMA):
            raise ShardError(f"{path}: its columns are not those of a game table")
        for batch in file.iter_batches(_BATCH, columns=list(columns) if columns is not None else None):
            for name in _NEVER_NULL:
                if name in batch.schema.names and batch.column(name).null_count:
                    raise ShardError(f"{path}: a record has no {name}")
            for name in _NUMBERS:
                if name in batch.schema.names and pc.all(pc.is_finite(batch.column(name))).as_py() is False:
                    raise ShardError(f"{path}: a record has a {name} that is no number")
            yield pa.Table.from_batches([batch])


def games_with(dataset: Dataset, ids: NDArray[np.uint64]) -> pa.Table:
    """Return the rows of the games ``ids``, in the order of the table. Raises ShardError."""
    wanted = pa.array(ids, pa.uint64())
    found = [batch.filter(pc.is_in(batch.column("game"), wanted)) for batch in batches(dataset)]
    return pa.concat_tables(found) if found else SCHEMA.empty_table()


def one_game(table: pa.Table, number: int) -> Any:
    """Return row ``number`` as ``Games`` of one game. Raises ShardError where it holds none."""
    chosen = table.slice(number, 1)
    if fault := row_fault(chosen.to_pylist()[0]):
        raise ShardError(f"{GAMES}: game {chosen.column('game')[0].as_py()}: {fault}")
    return games_of(chosen)


def record_name(row: Mapping[str, Any]) -> str:
    """Return how a person would name a record: source, member, and which game where it is not the first."""
    member = f"/{row['member']}" if row["member"] is not None else ""
    ordinal = f", game {row['index'] + 1}" if row.get("index") else ""
    return printable(f"{row['source']}{member}") + ordinal
