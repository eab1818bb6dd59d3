"""Columns of Parquet and Arrow (Feather) files, by pyarrow; read only.

A column of numbers is an array of one dimension, one of fixed-size lists of numbers an array of
two. Rows are read by the groups that the file stores them in.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum.files.formats.format import Format, Location, Opening, choose_member, find_named
from gatherum.files.formats.npy import checked_shape
from gatherum.files.formats.storage import BoxStorage, Source
from gatherum.files.stats import Meter

__all__ = ["Arrow"]

SUFFIXES = ("parquet", "arrow", "feather")


class Arrow(Format):
    """A column in a file of Parquet or of Arrow's own format."""

    name, form = "arrow", "'x.parquet:column'"
    read_only = "columns of Parquet and Arrow are read only"

    def recognise(self, text: str) -> tuple[str, str | None] | None:
        """Return the file and the column that ``x.parquet:column`` names."""
        return find_named(text, *SUFFIXES)

    def require(self) -> None:
        """Raise ImportError where pyarrow is missing."""
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise ImportError("Parquet and Arrow files need pyarrow: pip install pyarrow") from None

    def open(self, location: Location, opening: Opening) -> Source:
        """Open a column, and check that it is one of numbers."""
        file = opening.file(location)
        raw = open(file.fd, "rb", closefd=False)  # noqa: SIM115  # closed when the call ends
        opening.at_end(raw.close)
        kind = ParquetGroups if location.file.lower().endswith(".parquet") else ArrowGroups
        with _plain_errors(f"{location}: cannot be read"):
            groups = kind(raw)
        names = groups.schema.names
        name = choose_member(location, "column", location.member, names)
        if names.count(name) > 1:
            raise ValueError(f"{location}: the file has {names.count(name)} columns of that name")
        with _plain_errors(f"{location}: cannot be read"):
            groups.choose(name)
        dtype, width = _described(location, groups.schema.field(name).type)
        shape = (sum(groups.lengths), *width)
        column = Column(location.text, groups, shape, dtype, opening.meter)
        checked_shape(location.text, shape)
        # a group is decoded as a whole, and its rows are copied out of it
        opening.budget.check_chunk(
            location, 2 * column.chunks[0] * math.prod(width) * dtype.itemsize
        )
        storage = BoxStorage(column, opening.meter, self.read_only)
        return Source(location, shape, dtype, storage, file)


class ParquetGroups:
    """One column of the row groups of a Parquet file."""

    def __init__(self, raw: Any) -> None:
        from pyarrow import parquet

        self._file = parquet.ParquetFile(raw)
        self.schema = self._file.schema_arrow
        self.lengths: list[int] = []

    def choose(self, name: str) -> None:
        """Take this column."""
        self._name, about = name, self._file.metadata
        self.lengths = [about.row_group(i).num_rows for i in range(about.num_row_groups)]

    def read(self, number: int) -> Any:
        """Return the column of one group."""
        return self._file.read_row_group(number, columns=[self._name]).column(0)


class ArrowGroups:
    """One column of the record batches of an Arrow file."""

    def __init__(self, raw: Any) -> None:
        import pyarrow

        self._raw, self._file = raw, pyarrow.ipc.open_file(raw)
        self.schema = self._file.schema
        self.lengths: list[int] = []

    def choose(self, name: str) -> None:
        """Take this column; the others are not read."""
        import pyarrow

        options = pyarrow.ipc.IpcReadOptions(included_fields=[self.schema.names.index(name)])
        self._raw.seek(0)
        self._file = pyarrow.ipc.open_file(self._raw, options=options)
        # only a batch itself says how long it is
        self.lengths = [len(self.read(i)) for i in range(self._file.num_record_batches)]

    def read(self, number: int) -> Any:
        """Return the column of one batch."""
        return self._file.get_batch(number).column(0)


@contextmanager
def _plain_errors(where: str) -> Iterator[None]:
    """Turn what pyarrow raises for damaged files into one line about this one."""
    import pyarrow

    try:
        yield
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"{where}: {line}") from None


def _described(location: Location, kind: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return the dtype of a column's numbers, and how many there are in each row, if it says so."""
    import pyarrow

    width: tuple[int, ...] = ()
    plain = kind
    if pyarrow.types.is_fixed_size_list(kind):
        width, plain = (kind.list_size,), kind.value_type
    numbers = pyarrow.types.is_integer(plain) or pyarrow.types.is_floating(plain)
    if not numbers:
        raise ValueError(
            f"{location}: a column of {kind}, expected numbers or fixed-size lists of numbers"
        )
    return np.dtype(plain.to_pandas_dtype()), width


def _numbers(lists: Any) -> Any:
    """Return the numbers of fixed-size lists, one list after another."""
    import pyarrow

    if isinstance(lists, pyarrow.ChunkedArray):
        return pyarrow.chunked_array(
            [part.flatten() for part in lists.chunks], lists.type.value_type
        )
    return lists.flatten()


class Column:
    """A column as an array in chunks; a chunk has as many rows as the largest group."""

    def __init__(
        self, name: str, groups: ParquetGroups | ArrowGroups,
        shape: tuple[int, ...], dtype: np.dtype[Any], meter: Meter,
    ) -> None:  # fmt: skip
        self._name, self._groups, self._meter = name, groups, meter
        self.shape, self.dtype = shape, dtype
        self.chunks = (max(1, *groups.lengths, 1), *(max(1, n) for n in shape[1:]))
        self._ends = list(accumulate(groups.lengths))
        self._last: tuple[int, NDArray[Any]] | None = None

    def read_box(self, box: tuple[slice, ...]) -> NDArray[Any]:
        """Return some rows, from as many groups as they lie in."""
        rows, rest = box[0], box[1:]
        values = np.empty([part.stop - part.start for part in box], self.dtype)
        at = rows.start
        while at < rows.stop:
            number = bisect_right(self._ends, at)
            group = self._group(number)
            first = self._ends[number] - len(group)
            stop = min(rows.stop, self._ends[number])
            values[at - rows.start : stop - rows.start] = group[
                (slice(at - first, stop - first), *rest)
            ]
            at = stop
        self._meter.read(values.nbytes)
        return values

    def _group(self, number: int) -> NDArray[Any]:
        """Return the rows of one group; the last one is kept, as chunks may share one."""
        if self._last is None or self._last[0] != number:
            self._last = None
            self._last = number, self._decoded(number)
        return self._last[1]

    def _decoded(self, number: int) -> NDArray[Any]:
        with _plain_errors(f"{self._name}: group {number}"):
            column = self._groups.read(number)
            if column.null_count:
                raise ValueError("has values that are missing")
            numbers = _numbers(column) if self.shape[1:] else column
            if numbers.null_count:
                raise ValueError("has values that are missing")
            found = np.asarray(numbers.to_numpy(), self.dtype)
            return found.reshape(self._groups.lengths[number], *self.shape[1:])

    def write_box(self, box: tuple[slice, ...], values: NDArray[Any]) -> None:
        """Refuse: columns are only read."""
        raise NotImplementedError(self._name)
