"""`reduce_file` checks its arguments, runs a call, and writes or returns its results."""

from __future__ import annotations

import operator
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Never, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments import plain_values
from gatherum._model.call import Attributes
from gatherum._model.defaults import MEMORY
from gatherum._model.errors import unknown_argument
from gatherum._model.modes import MODES, ModeName
from gatherum.files.arguments.operands import Operand, Path
from gatherum.files.arguments.outputs import RunSettings
from gatherum.files.formats import locate
from gatherum.files.options import EveryOption
from gatherum.files.resources.stats import Progress, Stats
from gatherum.groups import errors as group_errors
from gatherum.groups import options
from gatherum.groups.function_names import ReduceName, ReduceNames
from gatherum.groups.order_statistics import METHODS, QuantileMethod

from . import errors
from .calls import REDUCE_FILE, GroupCall
from .decimal_columns import FillText, find_decimals, reduce_column
from .keys import Keys, columns_of, number_keys
from .outputs import check_suffix, check_table, labelled, table_suffix, write_results


class _Options(EveryOption, total=False):
    size: int | None
    axis: int
    weights: Operand
    q: float
    method: QuantileMethod
    fill_value: object


@overload
def reduce_file(
    values: Operand | None, groups: Operand, out: None = None, *, func: ReduceName = "sum",
    **options: Unpack[_Options],
) -> NDArray[Any]: ...  # fmt: skip
@overload
def reduce_file(
    values: Operand | None, groups: Operand, out: None = None, *, func: ReduceNames,
    **options: Unpack[_Options],
) -> dict[str, NDArray[Any]]: ...  # fmt: skip
@overload
def reduce_file(
    values: Operand | None, groups: Operand, out: Path, *,
    func: ReduceName | ReduceNames = "sum", **options: Unpack[_Options],
) -> Stats: ...  # fmt: skip
def reduce_file(
    values: Operand | None,
    groups: Operand,
    out: Path | None = None,
    size: int | None = None,
    func: ReduceName | ReduceNames = "sum",
    axis: int = 0,
    *,
    weights: Operand | None = None,
    q: float | None = None,
    method: QuantileMethod = "linear",
    fill_value: object = None,
    memory: str | int = MEMORY,
    mode: ModeName = "raise",
    negative: bool = False,
    spill_dir: Path | None = None,
    overwrite: bool = True,
    progress: Progress | bool | None = None,
    decode: bool = True,
    storage_options: Mapping[str, Any] | None = None,
    **unknown: Never,
) -> Stats | NDArray[Any] | dict[str, NDArray[Any]]:
    """Reduce the values of each group, as `gatherum.groups.reduce` does in memory.

    Parameters
    ----------
    values : path, array or None
        The values, of at least one dimension. A path such as ``sales.parquet:price,amount`` names
        several columns. None, with ``"count"``, counts the entries of `groups`.
    groups : path or array
        The groups, counted from 0: one for each position along `axis`, or one for each value. Keys
        are numbered as in `gatherum.groups.factorize`. They are strings, bytes, dates, bools, or
        several columns of a Parquet or Arrow file, such as ``sales.parquet:shop,day``. Missing keys
        are omitted.
    out : path, optional
        The output file. Without it the result is returned. A ``.parquet``, ``.arrow``,
        ``.feather`` or ``.csv`` file contains a table with named columns.
    size : int, optional
        The number of groups. The default is the largest entry plus one. It must not be given for
        keys.
    func : str or list of str, default "sum"
        The function, or several, as in `gatherum.groups.reduce`.
    axis : int, default 0
        The axis of `values` along which groups are formed.
    weights : path or array, optional
        As in `gatherum.groups.reduce`.
    q : float, optional
        The probability of ``"quantile"``, one number.
    method, fill_value, mode, negative
        As in `gatherum.groups.reduce`. `mode` and `negative` do not apply to keys.
    memory, spill_dir, overwrite, progress, decode,
    storage_options
        As in `gather_file`.

    Returns
    -------
    Stats, ndarray or dict of ndarray
        Rows, bytes, chunks, seconds and memory if `out` is given. The bytes are those of all
        columns and keys; the rows are counted once. Otherwise the result, or a dict if `func` is a
        list or if there are several columns or keys. The dict contains the distinct keys of each
        column, in sorted order, and a result for each function. The results of several columns have
        names such as ``price_sum``.

    Raises
    ------
    TypeError, ValueError, IndexError, OSError
        As in `gatherum.groups.reduce` and `gather_file`. ValueError if a function needs all values
        in memory, and they do not fit in `memory`.

    Notes
    -----
    Along axis 0, the functions sum, prod, mean, max, min, last, count, any, all, fsum, fmean and
    their nan forms are computed in one pass, with accumulators in memory. If the accumulators do
    not fit, any, all and the nan forms raise ValueError, and the other functions of this list are
    computed with scratch files. Functions that are not in this list, and functions with weights,
    need all values in memory.

    Decimals in columns of files and in memory are reduced as by `gatherum.groups.reduce`, and the
    results are arrays of ``decimal.Decimal``, or columns of a table. Numbers of more than 64 bits,
    in units of the last digit, need all values in memory.

    In an array file, several results are stored as records with named fields. The first column of a
    table of group numbers contains the number of each group, and is named like the column of
    groups.

    Examples
    --------
    >>> import numpy as np
    >>> reduce_file(np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), func="mean")
    array([4. , 1.5])
    >>> reduce_file(None, np.array([3, 1, 3]), func="count")
    array([0, 1, 0, 2])
    >>> reduce_file(np.array([20, 5, 22]), np.array(["Rome", "Oslo", "Rome"]), func="max")
    {'group': array(['Oslo', 'Rome'], dtype='<U4'), 'max': array([ 5, 22])}
    """
    if unknown:
        raise unknown_argument("reduce_file", unknown)
    started = time.perf_counter()
    names = _names(func, values, weights)
    quantile = _quantile(names, q)
    quantile_method = plain_values.as_choice(REDUCE_FILE, "method", method, METHODS, {})
    attributes = _attributes(axis, mode, negative)
    plain_values.as_boolean(REDUCE_FILE, "decode", decode)
    settings = RunSettings(
        memory, spill_dir, False, overwrite, progress, storage_options, decode=decode
    )
    group_count = None if size is None else plain_values.as_size(REDUCE_FILE, "size", size)
    call = GroupCall(
        names, {"groups": groups}, group_count, attributes, fill_value, settings, quantile,
        quantile_method,
    )  # fmt: skip
    operands = {"values": values, "groups": groups, "weights": weights}
    suffix = _checked_suffix(out, operands, settings)
    call, keys = _with_numbered_keys(call)
    columns = _columns(values, settings)
    plain = isinstance(func, str) and keys is None and len(columns) == 1
    direct = plain and out is not None and suffix is None
    results, stats = _run(call, columns, weights, None if suffix else out, direct=direct)
    stats = stats if keys is None else keys.stats + stats
    if plain and out is None:
        return results[names[0]]
    results = _with_labels(results, keys, groups, suffix, settings)
    if out is None:
        return results
    if results:  # otherwise the run has written its result
        stats += write_results(results, out, settings, suffix)
    return replace(stats, seconds=time.perf_counter() - started)


def _checked_suffix(
    out: Path | None, operands: Mapping[str, Operand | None], settings: RunSettings
) -> Any:
    """Return the suffix of a table, or None for other outputs, after checking the output."""
    if out is None:
        return None
    check_suffix(out)
    if (suffix := table_suffix(out)) is not None:
        check_table(out, operands, settings)
    return suffix


def _names(
    func: ReduceName | ReduceNames, values: Operand | None, weights: Operand | None
) -> tuple[str, ...]:
    """Return the names of the functions, after checking that the operands suit them."""
    names = tuple(dict.fromkeys(options.names_of(REDUCE_FILE, func, options.ALIASES)))
    options.check_taken(REDUCE_FILE, names, "weights", weights)
    if values is None and (others := [name for name in names if name != "count"]):
        raise errors.values_missing(REDUCE_FILE, others[0])
    return names


def _quantile(names: Sequence[str], q: object) -> float | None:
    """Return the probability of a quantile, or None if no function uses it."""
    quantile = options.as_q(REDUCE_FILE, names, q)
    if isinstance(quantile, tuple):
        raise group_errors.one_quantile(REDUCE_FILE, "files")
    return quantile


def _with_numbered_keys(call: GroupCall) -> tuple[GroupCall, Keys | None]:
    """Return a call with the numbers of its keys, and the keys, or None if it has group numbers."""
    keys = number_keys(call.operands["groups"], call.settings)
    if keys is None:
        return call, None
    if call.size is not None:
        raise errors.size_with_keys(REDUCE_FILE, call.size)
    attributes = call.attributes._replace(mode="drop")
    operands = {"groups": keys.numbers}
    return replace(call, operands=operands, size=keys.count, attributes=attributes), keys


def _attributes(axis: int, mode: str, negative: bool) -> Attributes:
    """Return the attributes of the scatter of slices, after checking the arguments."""
    return Attributes(
        "scatter_slices",
        plain_values.as_integer(REDUCE_FILE, "axis", axis),
        mode=plain_values.as_choice(REDUCE_FILE, "mode", mode, MODES),
        negative=plain_values.as_boolean(REDUCE_FILE, "negative", negative),
    )


def _run(
    call: GroupCall,
    columns: dict[str, Operand | None],
    weights: Operand | None,
    out: Path | None,
    *,
    direct: bool,
) -> tuple[dict[str, NDArray[Any]], Stats]:
    """Run a call on each column of values. Return the results, and the statistics of all runs."""
    results: dict[str, NDArray[Any]] = {}
    runs: list[Stats] = []
    exact = {column: find_decimals(values, call.settings) for column, values in columns.items()}
    if out is not None and any(exact.values()):
        raise errors.decimals_in_output(REDUCE_FILE, out)
    for column, values in columns.items():
        operands = {**call.operands, "values": values, "weights": weights}
        used = {role: each for role, each in operands.items() if each is not None}
        decimals, fill_value = exact[column], call.fill_value
        if isinstance(fill_value, FillText):
            fill_value = fill_value.value if decimals is None else fill_value.exact()
        of_one = replace(call, operands=used, fill_value=fill_value)
        if decimals is not None:
            of_column, stats = reduce_column(of_one, decimals)
        else:
            of_column, stats = of_one.run(out, direct=direct)
        runs.append(stats)
        prefix = f"{column}_" if len(columns) > 1 else ""
        results |= {f"{prefix}{name}": result for name, result in of_column.items()}
    return results, reduce(operator.add, runs)


def _columns(values: Operand | None, settings: RunSettings) -> dict[str, Operand | None]:
    """Return the columns of values by name."""
    names = columns_of(values, settings)
    if values is None or len(names) < 2:
        return {"": values}
    location = locate(values)
    return {name: replace(location, text=f"{location.file}:{name}", member=name) for name in names}


def _with_labels(
    results: dict[str, NDArray[Any]],
    keys: Keys | None,
    groups: Operand,
    suffix: str | None,
    settings: RunSettings,
) -> dict[str, NDArray[Any]]:
    """Return results after the keys of their groups or, in a table, the group numbers."""
    if keys is not None:
        return labelled(keys.labels, results)
    if suffix is None:
        return results
    return labelled(_group_numbers(groups, results, settings), results)


def _group_numbers(
    groups: Operand, results: dict[str, NDArray[Any]], settings: RunSettings
) -> dict[str, NDArray[Any]]:
    """Return the column of group numbers, with the name of the column of groups."""
    name = (columns_of(groups, settings) or ["group"])[0]
    return {name: np.arange(len(next(iter(results.values()))))}
