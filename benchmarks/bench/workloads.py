"""The workloads, as data: the call and its operands, the bytes that it must move, and the goals.

The floor of a call is its bytes, in whole 64-byte lines, divided by the machine's read
bandwidth. It is a model: with cache hits and stores that bypass the cache, times can be below it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from .cases import Array, Case

LINE = 64
Maker = Callable[[float, np.random.Generator], Any]
Floor = Callable[[Any], int]


@dataclass(frozen=True, slots=True)
class Workload:
    """One row of the table.

    Attributes
    ----------
    name : str
        The name for `--only`.
    title : str
        The title in reports, with the sizes of scale 1.
    make : callable
        Creates the operands at a scale.
    floor : callable
        The minimum number of bytes that the call must move, in whole lines.
    peer_goal : float
        The desired speedup over the best peer, into recycled memory.
    floor_goal : float, optional
        The maximum desired ratio of the time with ``out=`` to the floor.
    """

    name: str
    title: str
    make: Maker
    floor: Floor
    peer_goal: float
    floor_goal: float | None = None


def scaled(count: int, scale: float) -> int:
    return max(2, round(count * scale))


def values(rng: np.random.Generator, shape: int | tuple[int, ...], dtype: str) -> Array:
    """Return values in (0, 1], or small integers; their sums reveal lost additions."""
    numpy_dtype = np.dtype(dtype)
    if numpy_dtype.kind in "iu":
        return rng.integers(1, 100, shape, dtype=numpy_dtype)
    values: Array = rng.random(shape, dtype="f8" if numpy_dtype.itemsize == 8 else "f4")
    np.subtract(1, values, out=values)
    return values.astype(numpy_dtype, copy=False)


def numbers(rng: np.random.Generator, size: int, shape: int | tuple[int, ...]) -> Array:
    return rng.integers(0, size, shape, dtype="i8")


def _skewed(rng: np.random.Generator, size: int, count: int) -> Array:
    """Return Zipf-distributed row numbers whose popular rows are at random positions."""
    return rng.permutation(size)[(rng.zipf(1.2, count) - 1) % size]


def _permutations(rng: np.random.Generator, shape: tuple[int, int], axis: int) -> Array:
    lines = shape if axis == 1 else shape[::-1]
    numbers = rng.permuted(np.broadcast_to(np.arange(lines[1]), lines), axis=1)
    return np.ascontiguousarray(numbers if axis == 1 else numbers.T)


# Makers: each returns a function of scale and random generator.


def _rows(rows: int, width: int, dtype: str, count: int, zipf: bool = False) -> Maker:
    def make(scale: float, rng: np.random.Generator) -> Case:
        n, m = scaled(rows, scale), scaled(count, scale)
        indices = _skewed(rng, n, m) if zipf else numbers(rng, n, m)
        return Case("gather", values(rng, (n, width), dtype), indices)

    return make


def _line(dtype: str) -> Maker:
    def make(scale: float, rng: np.random.Generator) -> Case:
        n, m = scaled(50_000_000, scale), scaled(20_000_000, scale)
        return Case("gather", values(rng, n, dtype), numbers(rng, n, m))

    return make


def _axis(outer: int, size: int, inner: int | None, count: int) -> Maker:
    def make(scale: float, rng: np.random.Generator) -> Case:
        shape = (scaled(outer, scale), size) + (() if inner is None else (inner,))
        return Case("gather", values(rng, shape, "f4"), numbers(rng, size, count), axis=1)

    return make


def _elements(axis: int) -> Maker:
    def make(scale: float, rng: np.random.Generator) -> Case:
        shape = (scaled(8192, scale), 4096)
        indices = numbers(rng, shape[axis], shape)
        return Case("gather_elements", values(rng, shape, "f4"), indices, axis=axis)

    return make


def _cube(scale: float, rng: np.random.Generator) -> Case:
    shape = (scaled(256, scale), 256, 256)
    count = scaled(10_000_000, scale)
    indices = np.stack([numbers(rng, n, count) for n in shape], axis=1)
    return Case("gather_nd", values(rng, shape, "f4"), indices)


def _tuple_rows(scale: float, rng: np.random.Generator) -> Case:
    n, m = scaled(2_000_000, scale), scaled(1_000_000, scale)
    return Case("gather_nd", values(rng, (n, 64), "f4"), numbers(rng, n, (m, 1)))


def _set_elements(axis: int, unique: bool, reduction: str = "none") -> Maker:
    def make(scale: float, rng: np.random.Generator) -> Case:
        shape = (scaled(8192, scale), 4096)
        n = shape[axis]
        indices = _permutations(rng, shape, axis) if unique else numbers(rng, n, shape)
        data, updates = values(rng, shape, "f4"), values(rng, shape, "f4")
        return Case("scatter_elements", data, indices, updates, axis=axis, reduction=reduction)

    return make


def _set_rows(scale: float, rng: np.random.Generator) -> Case:
    """Return a case of distinct rows, since for duplicates no peer defines the result."""
    n, m = scaled(2_000_000, scale), scaled(200_000, scale)
    rows = rng.permutation(n)[:m, None]
    data, updates = values(rng, (n, 64), "f4"), values(rng, (m, 64), "f4")
    return Case("scatter_nd", data, rows, updates)


def _scalars(bins: int, dtype: str, reduction: str, scale_bins: bool = True) -> Maker:
    def make(scale: float, rng: np.random.Generator) -> Case:
        n = scaled(bins, scale) if scale_bins else bins
        m = scaled(20_000_000, scale)
        data, updates = values(rng, n, dtype), values(rng, m, dtype)
        return Case("scatter_nd", data, numbers(rng, n, (m, 1)), updates, reduction=reduction)

    return make


def _fold_rows(reduction: str) -> Maker:
    def make(scale: float, rng: np.random.Generator) -> Case:
        n, m = scaled(100_000, scale), scaled(1_000_000, scale)
        data, updates = values(rng, (n, 64), "f4"), values(rng, (m, 64), "f4")
        return Case("scatter_nd", data, numbers(rng, n, (m, 1)), updates, reduction=reduction)

    return make


# Floors.


def _every_slice_once(case: Case) -> int:
    """Count each addressed slice as read and written, and the indices (contiguous slices)."""
    return 2 * case.result_bytes + case.indices.nbytes


def _line_an_element(case: Case) -> int:
    """Count a whole line for each element read at random."""
    return int(np.prod(case.result_shape)) * LINE + case.result_bytes + case.indices.nbytes


def _all_data(case: Case) -> int:
    """Count the data once: all of its lines are accessed while they are in the cache."""
    return case.data.nbytes + case.result_bytes + case.indices.nbytes


def _whole_scatter(case: Case) -> int:
    """Count the data as read and written once, and the streams of indices and updates."""
    updates = 0 if case.updates is None else case.updates.nbytes
    return 2 * case.data.nbytes + case.indices.nbytes + updates


WORKLOADS: tuple[Workload, ...] = (
    Workload("rows-f32", "gather rows 2M x 64 f32, 1M random",
             _rows(2_000_000, 64, "f4", 1_000_000), _every_slice_once, 1.5, 1.1),
    Workload("rows-f16", "gather rows 200k x 768 f16, 200k random",
             _rows(200_000, 768, "f2", 200_000), _every_slice_once, 1.3, 1.0),
    Workload("rows-zipf", "gather rows 2M x 64 f32, 1M Zipf-skewed",
             _rows(2_000_000, 64, "f4", 1_000_000, zipf=True), _every_slice_once, 2.1, 0.9),
    Workload("line-f32", "gather 1-D 50M f32, 20M random", _line("f4"), _line_an_element, 1.4, 1.0),
    Workload("line-u8", "gather 1-D 50M u8, 20M random", _line("u1"), _line_an_element, 1.9, 0.8),
    Workload("line-f64", "gather 1-D 50M f64, 20M random", _line("f8"), _line_an_element, 1.7, 1.0),
    Workload("last-axis", "gather last axis 4096 x 16384 f32, 4096",
             _axis(4096, 16384, None, 4096), _all_data, 3.3, 1.0),
    Workload("middle-axis-wide", "gather middle axis 256 x 4096 x 64 f32, 4096",
             _axis(256, 4096, 64, 4096), _every_slice_once, 1.4, 0.9),
    Workload("middle-axis-narrow", "gather middle axis 4096 x 1024 x 4 f32, 1024",
             _axis(4096, 1024, 4, 1024), _all_data, 5.6, 1.0),
    Workload("elements-last", "gather_elements last axis 8192 x 4096 f32",
             _elements(1), _all_data, 1.7, 1.0),
    Workload("elements-first", "gather_elements axis 0, 8192 x 4096 f32",
             _elements(0), _all_data, 4.0, 1.6),
    Workload("nd-cube", "gather_nd 3-tuples, 256^3 f32, 10M", _cube, _line_an_element, 2.8, 1.1),
    Workload("nd-rows", "gather_nd 1-tuple rows 2M x 64 f32, 1M",
             _tuple_rows, _every_slice_once, 1.4, 1.1),
    Workload("scatter-last-unique", "scatter_elements last axis 8192 x 4096 f32, unique",
             _set_elements(1, unique=True), _whole_scatter, 1.5, 1.3),
    Workload("scatter-last-duplicates", "scatter_elements last axis, duplicates",
             _set_elements(1, unique=False), _whole_scatter, 1.5, 1.3),
    Workload("scatter-last-add", "scatter_elements last axis, add",
             _set_elements(1, unique=False, reduction="add"), _whole_scatter, 1.5, 1.3),
    Workload("scatter-first-unique", "scatter_elements axis 0, 8192 x 4096 f32, unique",
             _set_elements(0, unique=True), _whole_scatter, 4.0, 2.0),
    Workload("scatter-first-duplicates", "scatter_elements axis 0, duplicates",
             _set_elements(0, unique=False), _whole_scatter, 5.0, 2.0),
    Workload("scatter-first-add", "scatter_elements axis 0, add",
             _set_elements(0, unique=False, reduction="add"), _whole_scatter, 6.0, 2.0),
    Workload("set-rows", "scatter_nd rows 2M x 64 f32, 200k", _set_rows, _whole_scatter, 1.3, 0.9),
    Workload("set-scalars", "scatter_nd scalars 50M f32, 20M set",
             _scalars(50_000_000, "f4", "none"), _whole_scatter, 1.8, 3.0),
    Workload("add-1M-f32", "add 20M into 1M bins f32",
             _scalars(1_000_000, "f4", "add"), _whole_scatter, 1.4, 2.2),
    Workload("add-1M-f64", "add 20M into 1M bins f64",
             _scalars(1_000_000, "f8", "add"), _whole_scatter, 1.4, 2.2),
    Workload("add-1M-i64", "add 20M into 1M bins i64",
             _scalars(1_000_000, "i8", "add"), _whole_scatter, 1.4, 2.2),
    Workload("add-50M-f32", "add 20M into 50M bins f32",
             _scalars(50_000_000, "f4", "add"), _whole_scatter, 4.0, 2.0),
    Workload("add-256-f32", "add 20M into 256 bins f32",
             _scalars(256, "f4", "add", scale_bins=False), _whole_scatter, 1.0, 1.4),
    Workload("fold-rows-add", "row add 1M x 64 f32 into 100k",
             _fold_rows("add"), _whole_scatter, 1.7, 1.6),
    Workload("fold-rows-max", "row max 1M x 64 f32 into 100k",
             _fold_rows("max"), _whole_scatter, 2.5, 1.6),
)  # fmt: skip


def select(names: Sequence[str], only: Sequence[str] | None) -> list[str]:
    """Return the names that `only` selects, in their order.

    Parameters
    ----------
    names : sequence of str
        All names.
    only : sequence of str, optional
        Names, parts of names or shell patterns, optionally several separated by commas. If
        omitted or empty, all names are selected.

    Returns
    -------
    list of str
        The selected names.

    Raises
    ------
    ValueError
        If a pattern selects nothing.

    Examples
    --------
    >>> select(["rows-f32", "line-u8"], ["rows"])
    ['rows-f32']
    """
    patterns = [part.strip() for text in only or () for part in text.split(",") if part.strip()]
    if not patterns:
        return list(names)
    chosen: set[str] = set()
    for pattern in patterns:
        exact = [name for name in names if name == pattern]
        matches = exact or [name for name in names if fnmatchcase(name, f"*{pattern}*")]
        if not matches:
            raise ValueError(
                f"bench: --only must name workloads among {', '.join(names)}, got {pattern!r}"
            )
        chosen.update(matches)
    return [name for name in names if name in chosen]
