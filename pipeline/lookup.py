"""The rows of a part as a sequence: one by its index, or a batch of any of them in the order asked for."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from pipeline.columns import POLICY, Columns, join, no_policy, row_of, take_rows
from pipeline.epochs import Run
from pipeline.forms import Form
from pipeline.part import Part


class Rows:
    """The rows of a part in one form. It holds no open file; what it has read stays behind when it is pickled."""

    def __init__(self, part: Part, form: Form, names: tuple[str, ...], cache_bytes: int) -> None:
        self._part, self._form, self._names, self._cache_bytes = part, form, names, cache_bytes
        self._reads = form.reads(part.layout, names)
        self._runs: OrderedDict[Run, Columns] = OrderedDict()

    def __len__(self) -> int:
        return self._part.rows

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose symmetries and draws the rows have."""
        if epoch != self._form.epoch:
            self._form = replace(self._form, epoch=epoch)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_runs": OrderedDict()}

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: Sequence[int] | NDArray[np.integer[Any]] | slice) -> Columns: ...
    def __getitem__(self, index: Any) -> dict[str, Any] | Columns:
        """Return a row, or a batch of the rows of a list or a slice, in its order; negative numbers count from the end.

        A row has planes [P, B], [P, H, W] or [H, W, P], policies as arrays, the rest as numpy scalars.
        Raises IndexError outside the part, TypeError for what is no index, ShardError.
        """
        if isinstance(index, slice):
            return self._batch(np.arange(len(self))[index])
        numbers = np.asarray(index)
        if not numbers.size:
            numbers = numbers.astype(np.int64)
        if numbers.dtype.kind not in "iu" or numbers.ndim > 1:
            raise TypeError(f"rows are asked for by a number, a slice or a list of numbers, not {str(index)[:80]}")
        rows = len(self)
        wrong = numbers[(numbers >= rows) | (numbers < -rows if numbers.dtype.kind == "i" else False)]
        if wrong.size:
            raise IndexError(f"row {wrong.flat[0]} of {self._part.name}, which has {rows} rows")
        batch = self._batch(numbers.astype(np.int64).reshape(-1))
        return batch if numbers.ndim else row_of(batch, 0)

    def _batch(self, numbers: NDArray[np.int64]) -> Columns:
        rows = len(self)
        numbers = np.where(numbers < 0, numbers + rows, numbers)
        layout = self._part.layout
        out = self._form.blank(layout, self._names, len(numbers))
        ragged = no_policy()
        if len(numbers):
            chosen, which = np.unique(numbers, return_inverse=True)
            pieces = []
            for run in self._part.runs_of(chosen):
                low, high = np.searchsorted(chosen, (run.first, run.first + run.rows))
                pieces.append(take_rows(self._read(run), chosen[low:high] - run.first))
            ragged = self._form.fill(join(pieces), layout, which.reshape(-1), numbers, out)
        return {name: ragged[name] if name in POLICY else out[name] for name in self._names}

    def _read(self, run: Run) -> Columns:
        """Return a run, from memory if it was read not long ago."""
        if run in self._runs:
            self._runs.move_to_end(run)
            return self._runs[run]
        columns = self._part.read(run, self._reads)
        self._runs[run] = columns
        while len(self._runs) > 1 and self._size() > self._cache_bytes:
            self._runs.popitem(last=False)
        return columns

    def _size(self) -> int:
        return sum(values.nbytes for columns in self._runs.values() for values in columns.values())
