"""A call to `reduce_file`: the checks of its operands, and the choice of where it runs."""

from __future__ import annotations

import math
import operator
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments.indices import first_invalid
from gatherum._model import shape_limits
from gatherum._model.call import Attributes, FoldRule
from gatherum._model.callers import Caller, naming
from gatherum._model.dtypes import is_index
from gatherum._model.errors import group_out_of_bounds
from gatherum._model.modes import MOVING
from gatherum.files.arguments.operands import Operand, Path, open_all
from gatherum.files.arguments.outputs import RunSettings
from gatherum.files.file_call import FileCall
from gatherum.files.formats.storage import Source, check_unchanged, unchanged
from gatherum.files.resources.resources import Budget, Resources
from gatherum.files.resources.stats import Stats
from gatherum.groups import errors as group_errors
from gatherum.groups.dates import is_date
from gatherum.groups.evaluation import check_defined, check_nonempty
from gatherum.groups.functions import FUNCTIONS
from gatherum.groups.grouping import operator_of_groups
from gatherum.groups.reducing import ReduceOptions, run_functions

from . import errors
from .batches import TooLargeError, batches, read_whole
from .folds import Fold, Folds, is_folded

REDUCE_FILE = "reduce_file"
_CALLER = Caller(REDUCE_FILE, "groups", "values", "values").text
# The memory that functions need in memory, in multiples of the operands' size: for functions that
# sort, for functions that convert or mask values, and for other functions.
SORTING, CONVERTING, READING = 8, 5, 1.5
Results = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class GroupCall:
    """The functions, operands and checked arguments of a call."""

    names: tuple[str, ...]
    operands: Mapping[str, Operand]  # `groups`, and perhaps `values` and `weights`
    size: int | None
    attributes: Attributes  # of the scatter of slices
    fill_value: object
    settings: RunSettings
    quantile: float | None = None  # the probability of a quantile, and its method
    quantile_method: str = "linear"

    def run(self, out: Path | None, *, direct: bool = False) -> tuple[Results, Stats]:
        """Return the result of each function, and the statistics of the run.

        The output is checked. If `direct`, a result that does not fit in memory is written to the
        output, and is not returned.
        """
        checked = FileCall(REDUCE_FILE, dict(self.operands), out, {}, self.settings).checked()
        with checked as (located, resources, _):
            sources = open_all(located, resources)
            opened = _opened(self, sources)
            results = None
            with unchanged(sources.values()):
                try:
                    results = opened.results(resources)
                except IndexError:
                    opened.raise_invalid(resources)
                except TooLargeError:
                    opened = opened.with_group_count(resources)
            check_unchanged(sources.values())
            if results is not None:
                return results, resources.meter.stats()
        return opened.on_disk(out, direct=direct)


@dataclass(frozen=True)
class _OpenedCall:
    """A call with opened operands. `shape` is the shape of a result, `dtype` the dtype of values.

    The number of groups in the shape is None until it is known.
    """

    call: GroupCall
    sources: dict[str, Source]
    shape: tuple[Any, ...]
    dtype: np.dtype[Any]
    attributes: Attributes

    def check_defined(self) -> None:
        """Raise if a function is not defined for the values' dtype, or if its result is too large.

        `run_functions` checks calls with weights, because weights change the dtype of the values.
        """
        if "weights" in self.sources:
            return
        for name in self.call.names:
            row = FUNCTIONS[name]
            check_defined(REDUCE_FILE, row, name, self.dtype)
            if None not in self.shape:
                shape_limits.check_result(REDUCE_FILE, self.shape, row.result(self.dtype))

    def results(self, resources: Resources) -> Results:
        """Compute the functions from batches of values, or from all values in memory.

        Raise TooLargeError if a result does not fit, and can be computed on the disk.
        """
        names, total = self.call.names, resources.budget.total
        batched = self.attributes.axis == 0 and "weights" not in self.sources
        folded = [name for name in names if batched and is_folded(name)]
        others = [name for name in names if name not in folded]
        nbytes = sum(source.nbytes for source in self.sources.values())
        meter = resources.meter
        meter.rows, meter.in_chunks = math.prod(self.sources["groups"].shape), False
        meter.expect(nbytes * (bool(folded) + bool(others)))
        meter.phase("reading")
        results: Results = {}
        for name in others:
            needed = int(self._copies(name) * nbytes)
            if needed > total and not self._is_one_scatter(name):
                raise errors.values_larger_than_memory(REDUCE_FILE, name, self.dtype, needed, total)
            if needed > total:
                raise TooLargeError
        if others:
            results |= self._in_memory(others, resources)
        if folded:
            results |= self._in_batches(folded, resources)
        return {name: results[name] for name in names}

    def _copies(self, name: str) -> float:
        """Return the memory that a function needs, in multiples of the operands' size."""
        row = FUNCTIONS[name]
        if row.sorts:
            return SORTING
        converts = row.skips_nan or "weights" in self.sources or row.copies(self.dtype)
        return CONVERTING if converts else READING

    def _is_one_scatter(self, name: str) -> bool:
        """Return True if a function is one scatter of the values, which also runs on the disk."""
        row = FUNCTIONS[name]
        if "weights" in self.sources or not row.is_one_scatter:
            return False
        return not (row.compares and is_date(self.dtype))

    def _in_batches(self, names: list[str], resources: Resources) -> Results:
        """Fold all functions together, or one after another if they do not fit in memory."""
        try:
            return self._folded(names, resources)
        except TooLargeError:
            if len(names) == 1:
                raise
            return {name: self._folded([name], resources)[name] for name in names}

    def _folded(self, names: list[str], resources: Resources) -> Results:
        attributes, group_count = self.attributes, self.shape[0]
        # Which entries are valid depends on the number of groups if entries are moved or count from
        # the end.
        if group_count is None and (attributes.mode in MOVING or attributes.negative):
            group_count = self.with_group_count(resources).shape[0]
        shape, limit = (group_count, *self.shape[1:]), resources.budget.fold
        options = attributes, self.call.fill_value, limit
        folds = Folds(REDUCE_FILE, names, self.dtype, shape, *options)
        operands = [self.sources[role] for role in ("groups", "values") if role in self.sources]
        for entries, *values in batches(operands, resources):
            folds.add(entries, values[0] if values else None)
        return folds.results()

    def _in_memory(self, names: list[str], resources: Resources) -> Results:
        arrays = {role: read_whole(source, resources) for role, source in self.sources.items()}
        attributes, size = self.attributes, self.call.size
        values, groups, weights = (arrays.get(role) for role in ("values", "groups", "weights"))
        if size is None:
            size = max(0, int(arrays["groups"].max(initial=-1)) + 1)
        options = ReduceOptions(
            size=size, axis=attributes.axis, mode=attributes.mode, negative=attributes.negative,
            weights=weights, fill_value=self.call.fill_value, quantiles=self.call.quantile,
            quantile_method=self.call.quantile_method,
        )  # fmt: skip
        results: Results = run_functions(REDUCE_FILE, names, values, groups, options)
        return results

    def with_group_count(self, resources: Resources) -> _OpenedCall:
        """Return the call with its number of groups, read from `groups` if it is not given."""
        axis = self.attributes.axis
        if self.shape[axis] is not None:
            return self
        windows = _windows(self.sources["groups"], resources, any_order=True)
        largest = max((int(entries.max()) for _, entries in windows), default=-1)
        shape = (*self.shape[:axis], max(largest + 1, 0), *self.shape[axis + 1 :])
        sized = replace(self, shape=shape)
        sized.check_defined()
        return sized

    def raise_invalid(self, resources: Resources) -> NoReturn:
        """Raise an IndexError that names the first invalid entry of the groups."""
        axis, groups = self.attributes.axis, self.sources["groups"]
        size = self.with_group_count(resources).shape[axis]
        mode, negative = self.attributes.mode, self.attributes.negative
        value, position = 0, None
        for start, entries in _windows(groups, resources):
            invalid = first_invalid(entries, (size,), mode, negative, False)
            if invalid is not None:
                value = invalid.value
                position = shape_limits.coordinates_of(start + invalid.where[0], groups.shape)
                break
        raise group_out_of_bounds(
            REDUCE_FILE, value, size, position, mode, "groups", negative=negative
        )

    def on_disk(self, out: Path | None, *, direct: bool) -> tuple[Results, Stats]:
        """Compute each function with a separate scatter, using buckets on the disk."""
        memory = Budget.parse(REDUCE_FILE, self.call.settings.memory).total
        for name in self.call.names:
            if not self._is_one_scatter(name):
                raise errors.accumulators_larger_than_memory(REDUCE_FILE, name, self.shape, memory)
        names = self.call.names
        runs = [self._reduce_on_disk(name, out if direct else None) for name in names]
        results = {
            name: result for name, (result, _) in zip(names, runs, strict=True)
            if result is not None
        }  # fmt: skip
        return results, reduce(operator.add, (stats for _, stats in runs))

    def _reduce_on_disk(self, name: str, out: Path | None) -> tuple[NDArray[Any] | None, Stats]:
        """Compute a function by one scatter with buckets on the disk. Return its statistics, too.

        The result is None if it is written to `out`.
        """
        row, call = FUNCTIONS[name], self.call
        dtype: np.dtype[Any] = np.dtype(row.result(self.dtype))  # type: ignore[arg-type]
        self._check_space(dtype, out)
        initial = Fold.of(REDUCE_FILE, name, self.dtype, call.fill_value).initial
        groups, before = call.operands["groups"], None
        if initial is None:
            quiet = replace(call.settings, progress=None)
            false, true = np.zeros((), np.bool_), np.ones((), np.bool_)
            touched, before = self._run_scatter(false, groups, true, quiet, "none", None)
            assert touched is not None
            axis, per_value = self.attributes.axis, self.attributes.operator.addressing.shares_back
            check_nonempty(REDUCE_FILE, name, dtype, touched, axis, per_value=per_value)
            initial = np.zeros((), dtype)
        updates = np.ones((), dtype) if name == "count" else call.operands["values"]
        scatter = initial, groups, updates, call.settings, str(row.reduction), out
        result, stats = self._run_scatter(*scatter)
        return result, stats if before is None else before + stats

    def _check_space(self, dtype: np.dtype[Any], out: Path | None) -> None:
        """Raise OSError if the result, which may have many groups, does not fit on the disk."""
        folder = os.fspath(self.call.settings.spill_dir or tempfile.gettempdir())
        if out is not None and os.path.isdir(parent := os.path.dirname(os.path.abspath(str(out)))):
            folder = parent
        free, needed = shutil.disk_usage(folder).free, math.prod(self.shape) * dtype.itemsize
        if needed > free:
            raise errors.result_larger_than_disk(REDUCE_FILE, self.shape, dtype, free, folder)

    def _run_scatter(
        self, initial: NDArray[Any], groups: Operand, updates: Operand, settings: RunSettings,
        reduction: str, out: Path | None,
    ) -> tuple[NDArray[Any] | None, Stats]:  # fmt: skip
        """Reduce the updates of each group. The result of an empty group is `initial`."""
        operands = {"table": np.broadcast_to(initial, self.shape), "indices": groups}
        keywords = self.attributes.with_fold(FoldRule.afresh(reduction)).keywords
        operands["updates"] = updates
        with naming(_CALLER):
            return FileCall(self.attributes.op, operands, out, keywords, settings).measured()


def _opened(call: GroupCall, sources: dict[str, Source]) -> _OpenedCall:
    """Check the shapes and dtypes of opened operands."""
    entries, values = sources["groups"], sources.get("values")
    if not is_index(entries.dtype):
        raise group_errors.not_groups(REDUCE_FILE, entries.dtype)
    if values is None:
        attributes = call.attributes._replace(axis=0)
        opened = _OpenedCall(call, sources, (call.size,), np.dtype(np.int64), attributes)
        opened.check_defined()
        return opened
    shape = values.shape
    axis = shape_limits.resolve_axis(REDUCE_FILE, shape, call.attributes.axis, "values")
    if entries.shape not in (shape, shape[axis : axis + 1]):
        raise group_errors.other_groups(REDUCE_FILE, shape[axis], shape, entries.shape)
    op = operator_of_groups(len(entries.shape))
    result = (*shape[:axis], call.size, *shape[axis + 1 :])
    opened = _OpenedCall(
        call, sources, result, values.dtype, call.attributes._replace(op=op, axis=axis)
    )
    opened.check_defined()
    return opened


def _windows(
    groups: Source, resources: Resources, *, any_order: bool = False
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield the entries of groups in row-major order, with the number of entries before them."""
    flat = groups.storage.flat(resources, any_order=any_order).array
    for start in range(0, flat.size, resources.budget.entries):
        yield start, flat.read(start, min(start + resources.budget.entries, flat.size))
