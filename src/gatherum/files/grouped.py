"""Reduce groups of values in a file, with one scatter into empty groups."""

import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Never, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments import plain_values
from gatherum._model import shape_limits
from gatherum._model.call import Attributes, FoldRule
from gatherum._model.dtypes import is_index
from gatherum._model.errors import renamed, unknown_argument
from gatherum._model.modes import MODES, ModeName
from gatherum.files.arguments.operands import Operand, Path, find_operand, open_all
from gatherum.files.file_call import FileCall, RunSettings
from gatherum.files.formats.storage import Source
from gatherum.files.options import EveryOption
from gatherum.files.resources.resources import Resources
from gatherum.files.resources.stats import Progress, Stats
from gatherum.groups import errors
from gatherum.groups.dates import is_date
from gatherum.groups.evaluation import check_defined, start_of
from gatherum.groups.functions import FUNCTIONS, IN_FILES, FileFunction
from gatherum.groups.grouping import Grouping
from gatherum.groups.options import ALIASES

__all__ = ["reduce_file"]

REDUCE_FILE = "reduce_file"


class _Options(EveryOption, total=False):
    size: int | None
    func: FileFunction
    axis: int
    fill_value: object


@overload
def reduce_file(
    values: Operand | None, groups: Operand, out: None = None, **options: Unpack[_Options]
) -> NDArray[Any]: ...
@overload
def reduce_file(
    values: Operand | None, groups: Operand, out: Path, **options: Unpack[_Options]
) -> Stats: ...
def reduce_file(
    values: Operand | None,
    groups: Operand,
    out: Path | None = None,
    size: int | None = None,
    func: FileFunction = "sum",
    axis: int = 0,
    *,
    fill_value: object = None,
    memory: str | int = "1GiB",
    mode: ModeName = "raise",
    negative: bool = False,
    spill_dir: Path | None = None,
    overwrite: bool = True,
    progress: Progress | bool | None = None,
    decode: bool = True,
    storage_options: Mapping[str, Any] | None = None,
    **unknown: Never,
) -> Stats | NDArray[Any]:
    """Reduce the values of each group, as `gatherum.groups.reduce` does in memory.

    Parameters
    ----------
    values : path, array or None
        The values, of at least one dimension. None, with ``"count"``, counts the entries of
        `groups`.
    groups : path or array of int
        The groups, counted from 0: one for each position along `axis`, or one for each value.
    out : path, optional
        The output file. Without it the result is returned.
    size : int, optional
        The number of groups. By default, an extra pass over the groups finds the largest entry.
    func : {"sum", "prod", "mean", "max", "min", "last", "count", "fsum", "fmean"}, default "sum"
        The function. ``"max"`` and ``"min"`` of dates, and all other functions of
        `gatherum.groups.reduce`, need the values in memory.
    axis : int, default 0
        The axis of `values` along which groups are formed.
    fill_value, mode, negative
        As in `gatherum.groups.reduce`.
    memory, spill_dir, overwrite, progress, decode,
    storage_options
        As in `gather_file`.

    Returns
    -------
    Stats or ndarray
        Rows, bytes, chunks, seconds and memory, or the result itself if `out` is None.

    Raises
    ------
    TypeError, ValueError, IndexError, OSError
        As in `gatherum.groups.reduce` and `gather_file`.

    Examples
    --------
    >>> import numpy as np
    >>> reduce_file(np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), func="mean")
    array([4. , 1.5])
    >>> reduce_file(None, np.array([3, 1, 3]), func="count")
    array([0, 1, 0, 2])
    """
    if unknown:
        raise unknown_argument("reduce_file", unknown)
    name = plain_values.as_choice(REDUCE_FILE, "func", func, IN_FILES, ALIASES)
    if values is None and name != "count":
        raise errors.no_values_of(REDUCE_FILE, name)
    attributes = Attributes("scatter_slices", plain_values.as_integer(REDUCE_FILE, "axis", axis))
    attributes = attributes._replace(
        mode=plain_values.as_choice(REDUCE_FILE, "mode", mode, MODES),
        negative=plain_values.as_boolean(REDUCE_FILE, "negative", negative),
    )
    settings = RunSettings(
        memory, spill_dir, False, overwrite, progress, storage_options, decode=decode
    )
    with _messages():
        examined = _examined(values, groups, size, attributes, settings)
    row = FUNCTIONS[name]
    check_defined(REDUCE_FILE, row, name, examined.dtype)
    if row.compares and is_date(examined.dtype):
        raise errors.not_in_files(REDUCE_FILE, name, examined.dtype)
    dtype: np.dtype[Any] = np.dtype(row.result(examined.dtype))  # type: ignore[arg-type]
    shape_limits.check_result(REDUCE_FILE, examined.shape, dtype)
    _check_space(examined.shape, dtype, out, spill_dir)
    one_group = Grouping.of(REDUCE_FILE, "groups", np.zeros(1, np.int64), (1,), 0)
    start = start_of(row, dtype, one_group, np.zeros((), dtype), fill_value)
    if start is None:
        quiet = replace(settings, progress=None)
        touched = examined.scatter(np.zeros((), np.bool_), groups, np.ones((), np.bool_), quiet)
        if not touched.all():
            coordinates = shape_limits.coordinates_of(int(touched.argmin()), touched.shape)
            where = coordinates if examined.elements else ()
            raise errors.empty_group(
                REDUCE_FILE, name, dtype, coordinates[examined.attributes.axis], where
            )
        start = np.zeros((), dtype)
    updates = np.ones((), dtype) if name == "count" else values
    answer: Stats | NDArray[Any] = examined.scatter(
        start, groups, updates, settings, str(row.reduction), out
    )
    return answer


def _check_space(
    shape: tuple[int, ...], dtype: np.dtype[Any], out: Path | None, spill_dir: Path | None
) -> None:
    """Raise OSError if the result does not fit on the disk. A large number means many groups."""
    folder = os.fspath(spill_dir or tempfile.gettempdir())
    if out is not None and os.path.isdir(parent := os.path.dirname(os.path.abspath(str(out)))):
        folder = parent
    free, needed = shutil.disk_usage(folder).free, math.prod(shape) * dtype.itemsize
    if needed > free:
        raise errors.no_space(REDUCE_FILE, shape, dtype, free, folder)


@contextmanager
def _messages() -> Iterator[None]:
    """Rewrite the errors of the scatter as errors of `reduce_file`."""
    try:
        yield
    except (IndexError, TypeError, ValueError) as error:
        if not str(error).startswith("scatter_"):
            raise
        names = {"data": "values", "updates": "values", "indices": "groups"}
        raise renamed(error, REDUCE_FILE, names) from None


@dataclass(frozen=True)
class _Examined:
    """The scatter of a call, from the headers of its operands and the largest group.

    `shape` is the shape of the result, `dtype` the dtype of the values.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    attributes: Attributes

    @property
    def elements(self) -> bool:
        """Whether every value has a separate group."""
        return self.attributes.operator.addressing.shares_back

    def scatter(
        self,
        start: NDArray[Any],
        groups: Operand,
        updates: Operand,
        settings: RunSettings,
        reduction: str = "none",
        out: Path | None = None,
    ) -> Any:
        """Reduce the updates of each group. An empty group is `start`."""
        operands = {"table": np.broadcast_to(start, self.shape), "indices": groups}
        keywords = self.attributes.with_fold(FoldRule.afresh(reduction)).keywords
        operands["updates"] = updates
        with _messages():
            return FileCall(self.attributes.op, operands, out, keywords, settings).run()


def _examined(
    values: Operand | None,
    groups: Operand,
    size: object,
    attributes: Attributes,
    settings: RunSettings,
) -> _Examined:
    """Check the shapes of operands, and read the groups if their number is not given."""
    group_count = None if size is None else plain_values.as_size(REDUCE_FILE, "size", size)
    operands = {"groups": groups} if values is None else {"values": values, "groups": groups}
    with ExitStack() as stack:
        means = settings.memory, settings.spill_dir, settings.storage_options
        decode = plain_values.as_boolean(REDUCE_FILE, "decode", settings.decode)
        resources = Resources.of(stack, *means, decode=decode)
        sources = open_all(
            {role: find_operand(role, operand, REDUCE_FILE) for role, operand in operands.items()},
            resources,
        )
        entries = sources["groups"]
        if not is_index(entries.dtype):
            raise errors.not_groups(REDUCE_FILE, entries.dtype)
        if group_count is None:
            group_count = max(_largest(entries, resources) + 1, 0)
    if values is None:
        return _Examined((group_count,), np.dtype(np.int64), attributes._replace(axis=0))
    shape, dtype = sources["values"].shape, sources["values"].dtype
    try:
        axis = shape_limits.resolve_axis(REDUCE_FILE, shape, attributes.axis)
    except ValueError as error:
        raise renamed(error, REDUCE_FILE, {"data": "values"}) from None
    if entries.shape not in (shape, shape[axis : axis + 1]):
        raise errors.other_groups(REDUCE_FILE, shape[axis], shape, entries.shape)
    op = "scatter_elements" if len(entries.shape) > 1 else "scatter_slices"
    result = (*shape[:axis], group_count, *shape[axis + 1 :])
    return _Examined(result, dtype, attributes._replace(op=op, axis=axis))


def _largest(groups: Source, resources: Resources) -> int:
    """Return the largest entry, or -1 without entries."""
    flat = groups.storage.flat(resources, any_order=True).array
    starts = range(0, flat.size, resources.budget.entries)
    windows = (flat.read(n, min(n + resources.budget.entries, flat.size)) for n in starts)
    return max((int(window.max()) for window in windows), default=-1)
