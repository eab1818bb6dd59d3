"""Columns of Parquet and Arrow (Feather) files. pyarrow reads these files; they are never written.

A column of numbers is an array with one dimension, a column of lists of equal length is an array
with two dimensions, and so on. Rows are read in the groups that the file stores.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum.files.formats import arrow_keys
from gatherum.files.formats.arrow_groups import (
    FEATHER1,
    STREAM,
    Groups,
    NullsError,
    ParquetGroups,
    groups_in,
    plain_errors,
)
from gatherum.files.formats.format import Format, KeyColumn, Location
from gatherum.files.formats.members import choose_member
from gatherum.files.formats.npy import checked_shape
from gatherum.files.formats.storage import BoxStorage, Source
from gatherum.files.resources.resources import Resources
from gatherum.files.resources.stats import Meter
from gatherum.files.row_access.grid import BoxArray
from gatherum.groups.arrow_arrays import as_numpy, dtype_of


class Arrow(Format):
    """A column in a Parquet file or in a file in Arrow's IPC format."""

    name, example, suffixes = "arrow", "'x.parquet:column'", ("parquet", "arrow", "feather")
    read_only = "columns of Parquet and Arrow are read only"
    converts = 0  # the memory to convert the items of a group, in sizes of the result

    def is_start(self, head: bytes) -> bool:
        """Return True if a file of this format can begin with these bytes."""
        return head.startswith((b"PAR1", b"ARROW1", FEATHER1, STREAM))

    def require(self) -> None:
        """Raise ImportError if pyarrow is missing."""
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise ImportError("Parquet and Arrow files need pyarrow: pip install pyarrow") from None

    def open(self, location: Location, resources: Resources) -> Source:
        """Open a column, and check that it contains numbers."""
        file = location.open(resources)
        groups = groups_in(location, file, resources)
        names = groups.schema.names
        name = choose_member(location, "column", location.member, names)
        if names.count(name) > 1:
            raise ValueError(f"{location}: the file has {names.count(name)} columns of that name")
        with plain_errors(f"{location}: cannot be read"):
            groups.choose(name)
        dtype, widths = self.described(location, groups.schema.field(name).type)
        shape = (sum(groups.lengths), *_measured(location, groups, widths))
        column = self.column(location.text, groups, shape, dtype, resources.meter)
        checked_shape(location.text, shape)
        # a group is decoded completely, and rows are copied from it
        copies = 2 + self.converts
        nbytes = copies * column.chunks[0] * math.prod(shape[1:]) * dtype.itemsize
        group_name = ("batch", "")
        if isinstance(groups, ParquetGroups):
            group_name = ("row group", "; write the file with a smaller row_group_size")
        resources.budget.check_chunk(location, max(nbytes, groups.batch_bytes), *group_name)
        storage = BoxStorage(column, self.read_only)
        return Source(location, shape, dtype, storage, file)

    def described(
        self, location: Location, arrow_type: Any
    ) -> tuple[np.dtype[Any], list[int | None]]:
        """Return the dtype of a column's items, and the length of the lists at each level."""
        return _described(location, arrow_type)

    def column(self, *arguments: Any) -> ArrowColumn:
        """Return a column for the arguments of `ArrowColumn`."""
        return ArrowColumn(*arguments)

    def named_columns(self, location: Location, resources: Resources) -> list[str]:
        """Return the column names in a location, which are separated by commas."""
        self.require()
        return arrow_keys.named_columns(location, resources)

    def open_keys(self, location: Location, resources: Resources) -> list[KeyColumn]:
        """Open the columns in a location. Strings are read as dictionaries."""
        self.require()
        return arrow_keys.open_keys(location, resources)


def _advice(arrow_type: Any) -> str:
    """Return advice to store a column of this type as integers."""
    from pyarrow import types

    from gatherum.groups.errors import DECIMALS, KEYS

    if types.is_decimal(arrow_type):
        return f"; {DECIMALS}"
    if any(
        test(arrow_type) for test in (types.is_dictionary, types.is_string, types.is_large_string)
    ):
        return f"; {KEYS}"
    return ""


def _described(location: Location, arrow_type: Any) -> tuple[np.dtype[Any], list[int | None]]:
    """Return the dtype of a column's items, and the length of the lists at each level.

    A length is None if the type does not define it.
    """
    import pyarrow

    widths: list[int | None] = []
    item_type, types = arrow_type, pyarrow.types
    if isinstance(arrow_type, pyarrow.FixedShapeTensorType):
        _check_order(location, arrow_type.permutation)
        widths, item_type = list(arrow_type.shape), arrow_type.value_type
    while types.is_fixed_size_list(item_type) or _has_lists(item_type):
        widths.append(item_type.list_size if types.is_fixed_size_list(item_type) else None)
        item_type = item_type.value_type
    names = ("integer", "floating", "boolean", "date", "duration")
    zoneless = types.is_timestamp(item_type) and item_type.tz is None
    if not zoneless and not any(getattr(types, f"is_{name}")(item_type) for name in names):
        raise ValueError(
            f"{location}: a column of {arrow_type}, expected numbers, bools, times without a zone, "
            f"or lists of these{_advice(item_type)}"
        )
    return dtype_of(item_type), widths


def _check_order(location: Location, permutation: list[int] | None) -> None:
    """Raise ValueError for tensors whose dimensions are permuted.

    For permutations of three or more dimensions, the order that pyarrow writes and reads differs
    from Arrow's specification.
    """
    if permutation is not None and permutation != sorted(permutation):
        raise ValueError(
            f"{location}: a column of tensors with the permutation {permutation}, expected "
            "dimensions in their order; write the column anew from a C-contiguous array"
        )


def _has_lists(arrow_type: Any) -> bool:
    """Return True for a list type whose lists may differ in length."""
    import pyarrow

    names = ("is_list", "is_large_list", "is_list_view", "is_large_list_view")
    return any(getattr(pyarrow.types, name)(arrow_type) for name in names)


def _measured(location: Location, groups: Groups, widths: list[int | None]) -> list[int]:
    """Return the lengths of a column's lists. If the type defines none, the first row does.

    When the lists are read, each is checked to have these lengths.
    """
    group_number = next((i for i, length in enumerate(groups.lengths) if length), None)
    if group_number is None and None in widths:
        raise ValueError(f"{location}: has no row that says how long its lists are")
    row = None
    if group_number is not None and None in widths:
        with plain_errors(f"{location}: group {group_number}"):
            row = groups.read(group_number)[0]
    lengths: list[int] = []
    for width in widths:
        if row is not None and not row.is_valid:
            with plain_errors(f"{location}: group {group_number}"):
                raise NullsError
        lengths.append((0 if row is None else len(row)) if width is None else width)
        row = row[0] if row is not None and lengths[-1] else None
    return lengths


def _flat(values: Any, widths: tuple[int, ...]) -> NDArray[Any]:
    """Return the items of an array of lists, one after another."""
    import pyarrow

    if isinstance(values, pyarrow.ChunkedArray):
        parts = [_flat(part, widths) for part in values.chunks]
        return parts[0] if len(parts) == 1 else np.concatenate(parts or [np.empty(0)])
    if isinstance(values, pyarrow.ExtensionArray):
        values = values.storage
    if values.null_count:
        raise NullsError
    if not (pyarrow.types.is_fixed_size_list(values.type) or _has_lists(values.type)):
        return as_numpy(values)
    if _has_lists(values.type):
        lengths = pyarrow.compute.list_value_length(values).unique().to_pylist()
        if other_lengths := [length for length in lengths if length != widths[0]]:
            raise ValueError(
                f"has a list of {other_lengths[0]} items, the first row one of {widths[0]}"
            )
    return _flat(values.flatten(), widths[1:])


class ArrowColumn(BoxArray):
    """A column as an array in chunks. A chunk has as many rows as the largest group."""

    def __init__(
        self, name: str, groups: Groups,
        shape: tuple[int, ...], dtype: np.dtype[Any], meter: Meter,
    ) -> None:  # fmt: skip
        self._name, self._groups, self._meter = name, groups, meter
        self.shape, self.dtype = shape, dtype
        self.chunks = (max(1, *groups.lengths, 1), *(max(1, n) for n in shape[1:]))
        self._ends = list(accumulate(groups.lengths))
        self._last: tuple[int, NDArray[Any]] | None = None

    def view_box(self, box: tuple[slice, ...]) -> NDArray[Any] | None:
        """Return rows of one group without a copy, or None for rows of several groups."""
        rows, columns = box[0], box[1:]
        group_number = bisect_right(self._ends, rows.start)
        if rows.stop > self._ends[group_number]:
            return None
        is_kept = self._last is not None and self._last[0] == group_number
        row_group = self._group(group_number)
        first = self._ends[group_number] - len(row_group)
        view = row_group[(slice(rows.start - first, rows.stop - first), *columns)]
        view.flags.writeable = False  # other calls read the same group
        if not is_kept:
            self._meter.read(view.nbytes)
        return view

    def read_box(self, box: tuple[slice, ...]) -> NDArray[Any]:
        """Read rows from all groups that contain them."""
        rows, columns = box[0], box[1:]
        values = np.empty([part.stop - part.start for part in box], self.dtype)
        row = rows.start
        while row < rows.stop:
            group_number = bisect_right(self._ends, row)
            row_group = self._group(group_number)
            first = self._ends[group_number] - len(row_group)
            stop = min(rows.stop, self._ends[group_number])
            values[row - rows.start : stop - rows.start] = row_group[
                (slice(row - first, stop - first), *columns)
            ]
            row = stop
        self._meter.read(values.nbytes)
        return values

    def _group(self, group_number: int) -> NDArray[Any]:
        """Return the rows of one group. The last group is cached, because chunks may share it."""
        if self._last is None or self._last[0] != group_number:
            self._last = None
            self._last = group_number, self._decoded(group_number)
        return self._last[1]

    def _decoded(self, group_number: int) -> NDArray[Any]:
        with plain_errors(f"{self._name}: group {group_number}"):
            items = np.asarray(self.items(self._groups.read(group_number)), self.dtype)
            return items.reshape(self._groups.lengths[group_number], *self.shape[1:])

    def items(self, values: Any) -> NDArray[Any]:
        """Return the items of the rows of a group."""
        return _flat(values, self.shape[1:])
