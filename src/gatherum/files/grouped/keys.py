"""Keys of groups in files, such as strings, dates or several columns, which are numbered."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum.files.arguments.operands import Operand, find_operand, open_all
from gatherum.files.arguments.outputs import RunSettings
from gatherum.files.formats import locate
from gatherum.files.formats.format import Location
from gatherum.files.formats.storage import Source
from gatherum.files.resources.resources import Resources
from gatherum.files.resources.stats import Meter, Stats
from gatherum.groups.arrow_arrays import codes_of
from gatherum.groups.factorizing import factorize

from .batches import batches

KINDS = "SUMmb"  # of the dtypes of arrays of keys
MERGED = 1 << 20  # labels of several batches from which they are merged
Arrays = tuple[Any, ...]  # of NumPy or Arrow


@dataclass(frozen=True)
class Keys:
    """The number of each key (-1 for a missing key), and the distinct keys of each column.

    `stats` are the statistics of the run that read the keys.
    """

    numbers: NDArray[Any]
    labels: dict[str, NDArray[Any]]
    stats: Stats

    @property
    def count(self) -> int:
        """The number of distinct keys."""
        return len(next(iter(self.labels.values())))


def columns_of(operand: Operand, settings: RunSettings) -> list[str]:
    """Return the names of the columns in the path of a table, or no names for other operands."""
    with ExitStack() as stack:
        location, resources = located(operand), resources_of(stack, settings)
        return [] if location is None else location.format.named_columns(location, resources)


def number_keys(operand: Operand, settings: RunSettings) -> Keys | None:
    """Return the keys of a file or an array. Return None if they are group numbers."""
    with ExitStack() as stack:
        location, resources = located(operand), resources_of(stack, settings)
        columns = [] if location is None else location.format.open_keys(location, resources)
        if columns:
            if len(columns) == 1 and not columns[0].is_key:
                return None
            names = [column.name for column in columns]
            rows: Iterable[Any] = zip(columns[0].joined_batches())
            if len(columns) > 1:
                rows = zip(*(column.batches() for column in columns), strict=True)
            return _numbered(names, columns[0].length, rows, settings, resources.meter)
        source = _array_of_keys(operand, resources)
        if source is None:
            return None
        rows = batches([source], resources)
        return _numbered(["group"], source.shape[0], rows, settings, resources.meter)


def _array_of_keys(operand: Operand, resources: Resources) -> Source | None:
    """Open an array of keys. Return None for other arrays, and for files that are not read."""
    is_path = isinstance(operand, (str, os.PathLike, Location))
    if not is_path and getattr(getattr(operand, "dtype", None), "kind", "") not in KINDS:
        return None
    try:
        where = find_operand("groups", operand, "reduce_file")
        if isinstance(where, Location) and where.remote:
            return None
        source = open_all({"groups": where}, resources)["groups"]
    except (ImportError, OSError, TypeError, ValueError):  # the call raises it
        return None
    return source if source.dtype.kind in KINDS and len(source.shape) == 1 else None


def located(operand: Operand) -> Location | None:
    """Return the location of a file, or None for arrays and for files that are not read."""
    if not isinstance(operand, (str, os.PathLike, Location)):
        return None
    try:
        return locate(operand)
    except (OSError, TypeError, ValueError):  # the call raises it
        return None


def resources_of(stack: ExitStack, settings: RunSettings) -> Resources:
    """Return the resources to read an operand before the call runs."""
    return Resources.of(
        "reduce_file", stack, settings.memory, settings.spill_dir, settings.storage_options
    )


class _Labels:
    """The distinct keys of all batches, in the order of their first occurrence."""

    def __init__(self) -> None:
        self._merged: Arrays | None = None
        self._pending: list[Arrays] = []
        self._maps: list[NDArray[Any]] = []  # for each batch, the number of each of its labels

    def add(self, labels: Arrays) -> None:
        """Add the distinct keys of the next batch."""
        self._pending.append(labels)
        known = 0 if self._merged is None else len(self._merged[0])
        if sum(len(part[0]) for part in self._pending) > max(MERGED, 2 * known):
            self._merge()

    def _merge(self) -> None:
        known = [] if self._merged is None else [self._merged]
        parts = [*known, *self._pending]
        parts = [part for part in parts if len(part[0])] or parts[:1]
        columns = zip(*parts, strict=True)
        numbers, self._merged = _factorized([_joined(column) for column in columns])
        start = len(known[0][0]) if known else 0
        for labels in self._pending:
            self._maps.append(numbers[start : start + len(labels[0])])
            start += len(labels[0])
        self._pending = []

    def finish(self) -> tuple[Arrays, list[NDArray[Any]]]:
        """Return the sorted labels, and the final number of each label of each batch."""
        self._merge()
        assert self._merged is not None
        numbers, labels = _factorized(self._merged, sort=True)
        numbers = np.append(numbers, -1)  # of a missing key in a dictionary
        return labels, [numbers[part] for part in self._maps]


def _factorized(keys: Sequence[Any], sort: bool = False) -> tuple[NDArray[Any], Arrays]:
    """Return the number of each key, and the distinct keys of each column."""
    if len(keys) == 1 and not sort and type(keys[0]).__module__.startswith("pyarrow"):
        return _encoded(keys[0])
    numbers, labels = factorize(*keys, sort=sort)
    return numbers, labels if isinstance(labels, tuple) else (labels,)


def _encoded(keys: Any) -> tuple[NDArray[Any], Arrays]:
    """Return the codes of an Arrow array, and the keys of its dictionary that occur in it.

    The dictionary may repeat a key.
    """
    import pyarrow

    if not hasattr(keys, "dictionary"):
        keys = keys.dictionary_encode()
    codes = codes_of(keys)
    used = np.zeros(len(keys.dictionary) + 1, np.bool_)
    used[codes] = True
    used = used[:-1]
    if used.all():
        return codes, (keys.dictionary,)
    codes = np.append(np.cumsum(used) - 1, -1)[codes]
    return codes, (keys.dictionary.filter(pyarrow.array(used)),)


def _joined(columns: Sequence[Any]) -> Any:
    """Return the keys of several batches, one after another."""
    if not type(columns[0]).__module__.startswith("pyarrow"):
        return np.concatenate(columns)
    import pyarrow

    return pyarrow.concat_arrays(columns)


def _parts(keys: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Yield the keys of a batch, or those of each chunk of a single Arrow column."""
    if len(keys) > 1 or not hasattr(keys[0], "chunks"):
        yield keys
    else:
        yield from ((chunk,) for chunk in keys[0].chunks)


def _numbered(
    names: list[str], length: int, rows: Iterable[Any], settings: RunSettings, meter: Meter
) -> Keys:
    """Return the numbers of all keys, stored in an unnamed file, and the distinct keys."""
    with tempfile.TemporaryFile(dir=settings.spill_dir) as file:
        dtype = np.int32 if length < 2**31 else np.int64  # there are at most as many numbers
        numbers = np.memmap(file, dtype, "w+", shape=(max(length, 1),))[:length]
    meter.in_chunks = False
    labels, ends = _Labels(), [0]
    for keys in (part for batch in rows for part in _parts(batch)):
        codes, distinct = _factorized(keys)
        numbers[ends[-1] : ends[-1] + len(codes)] = codes
        ends.append(ends[-1] + len(codes))
        labels.add(distinct)
    if len(ends) == 1:
        empty = {name: np.empty(0, "U1") for name in names}
        return Keys(np.empty(0, np.int64), empty, meter.stats())
    final, maps = labels.finish()
    for start, stop, numbers_of in zip(ends, ends[1:], maps, strict=False):
        final_numbers = np.append(numbers_of, -1).astype(numbers.dtype)
        numbers[start:stop] = final_numbers[numbers[start:stop]]
    return Keys(numbers, dict(zip(names, final, strict=True)), meter.stats())
