"""numba: compiled parallel loops that keep the order of updates and do not check indices."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from ..cases import Array, Case
from . import Methods

numba: Any = import_module("numba")
prange = numba.prange

MOST_PRIVATE_BYTES = 16 << 20


def _gather_lines(data, indices, out):  # type: ignore[no-untyped-def]
    for i in prange(indices.size):
        out[i] = data[indices[i]]


def _gather_rows(data, indices, out):  # type: ignore[no-untyped-def]
    for i in prange(indices.size):
        row = indices[i]
        for j in range(data.shape[1]):
            out[i, j] = data[row, j]


def _gather_last(data, indices, out):  # type: ignore[no-untyped-def]
    for i in prange(data.shape[0]):
        for j in range(indices.size):
            out[i, j] = data[i, indices[j]]


def _gather_middle(data, indices, out):  # type: ignore[no-untyped-def]
    for i in prange(data.shape[0]):
        for j in range(indices.size):
            row = indices[j]
            for k in range(data.shape[2]):
                out[i, j, k] = data[i, row, k]


def _elements_last(data, indices, out):  # type: ignore[no-untyped-def]
    for i in prange(indices.shape[0]):
        for j in range(indices.shape[1]):
            out[i, j] = data[i, indices[i, j]]


def _elements_first(data, indices, out):  # type: ignore[no-untyped-def]
    for i in prange(indices.shape[0]):
        for j in range(indices.shape[1]):
            out[i, j] = data[indices[i, j], j]


def _gather_cube(data, indices, out):  # type: ignore[no-untyped-def]
    for i in prange(indices.shape[0]):
        out[i] = data[indices[i, 0], indices[i, 1], indices[i, 2]]


def _set_last(indices, updates, out):  # type: ignore[no-untyped-def]
    for i in prange(indices.shape[0]):
        for j in range(indices.shape[1]):
            out[i, indices[i, j]] = updates[i, j]


def _add_last(indices, updates, out):  # type: ignore[no-untyped-def]
    for i in prange(indices.shape[0]):
        for j in range(indices.shape[1]):
            out[i, indices[i, j]] += updates[i, j]


def _set_first(indices, updates, out, pieces):  # type: ignore[no-untyped-def]
    width = indices.shape[1]
    for piece in prange(pieces):
        for i in range(indices.shape[0]):
            for j in range(width * piece // pieces, width * (piece + 1) // pieces):
                out[indices[i, j], j] = updates[i, j]


def _add_first(indices, updates, out, pieces):  # type: ignore[no-untyped-def]
    width = indices.shape[1]
    for piece in prange(pieces):
        for i in range(indices.shape[0]):
            for j in range(width * piece // pieces, width * (piece + 1) // pieces):
                out[indices[i, j], j] += updates[i, j]


def _set_rows(indices, updates, out):  # type: ignore[no-untyped-def]
    for i in prange(indices.shape[0]):
        row = indices[i, 0]
        for j in range(out.shape[1]):
            out[row, j] = updates[i, j]


def _set_scalars(indices, updates, out):  # type: ignore[no-untyped-def]
    for i in range(indices.shape[0]):
        out[indices[i, 0]] = updates[i]


def _add_scalars(indices, updates, out):  # type: ignore[no-untyped-def]
    for i in range(indices.shape[0]):
        out[indices[i, 0]] += updates[i]


def _add_privately(indices, updates, out, pieces):  # type: ignore[no-untyped-def]
    own = np.zeros((pieces, out.size), out.dtype)
    count = indices.shape[0]
    for piece in prange(pieces):
        for i in range(count * piece // pieces, count * (piece + 1) // pieces):
            own[piece, indices[i, 0]] += updates[i]
    for i in prange(out.size):
        for piece in range(pieces):
            out[i] += own[piece, i]


def _add_rows(indices, updates, out):  # type: ignore[no-untyped-def]
    for i in range(indices.shape[0]):
        row = indices[i, 0]
        for j in range(out.shape[1]):
            out[row, j] += updates[i, j]


def _max_rows(indices, updates, out):  # type: ignore[no-untyped-def]
    for i in range(indices.shape[0]):
        row = indices[i, 0]
        for j in range(out.shape[1]):
            out[row, j] = max(out[row, j], updates[i, j])


def _owned_rows(indices, updates, out, pieces, add):  # type: ignore[no-untyped-def]
    rows = out.shape[0]
    for piece in prange(pieces):
        low, high = rows * piece // pieces, rows * (piece + 1) // pieces
        for i in range(indices.shape[0]):
            row = indices[i, 0]
            if low <= row < high:
                for j in range(out.shape[1]):
                    if add:
                        out[row, j] += updates[i, j]
                    else:
                        out[row, j] = max(out[row, j], updates[i, j])


def _copy(data, out):  # type: ignore[no-untyped-def]
    for i in prange(data.size):
        out[i] = data[i]


@cache
def _parallel(function: Callable[..., None]) -> Any:
    return numba.njit(parallel=True)(function)


@cache
def _serial(function: Callable[..., None]) -> Any:
    return numba.njit(function)


def methods(case: Case) -> Methods:
    """Return numba's methods for a case."""
    if case.updates is not None:
        return _scatters(case, case.updates)
    data = case.data
    if data.dtype == np.float16:  # numba does not support float16: move the bits as integers
        data = data.view(np.uint16)
    indices, kernel = case.indices, _gather_kernel(case)
    if case.op == "gather_nd" and indices.shape[1] == 1:
        indices = indices[:, 0]
    call = _parallel(kernel)

    def run() -> Array:
        out = np.empty(case.result_shape, data.dtype)
        call(data, indices, out)
        return out.view(case.data.dtype)

    return {"parallel loop": run}


def _gather_kernel(case: Case) -> Callable[..., None]:
    if case.op == "gather_elements":
        return (_elements_first, _elements_last)[case.axis]
    if case.op == "gather_nd":
        return _gather_cube if case.indices.shape[1] == 3 else _gather_rows
    if case.axis == 0:
        return _gather_lines if case.data.ndim == 1 else _gather_rows
    return _gather_last if case.data.ndim == 2 else _gather_middle


def _scatters(case: Case, updates: Array) -> Methods:
    data, add, indices = case.data, case.reduction == "add", case.indices
    threads = int(numba.get_num_threads())
    copy = _parallel(_copy)

    def on_a_copy(kernel: Any, *more: Any) -> Callable[[], Array]:
        def run() -> Array:
            out = np.empty_like(data)
            copy(data.reshape(-1), out.reshape(-1))
            kernel(indices, updates, out, *more)
            return out

        return run

    if case.op == "scatter_elements":
        if case.axis == 1:
            return {"parallel loop": on_a_copy(_parallel(_add_last if add else _set_last))}
        kernel = _parallel(_add_first if add else _set_first)
        return {"parallel loop": on_a_copy(kernel, threads)}
    if data.ndim == 1:
        calls = {"loop": on_a_copy(_serial(_add_scalars if add else _set_scalars))}
        if add and threads * data.nbytes <= MOST_PRIVATE_BYTES:
            calls["private copies"] = on_a_copy(_parallel(_add_privately), threads)
        return calls
    if case.reduction == "none":
        return {"parallel loop": on_a_copy(_parallel(_set_rows))}  # the rows are distinct
    return {
        "loop": on_a_copy(_serial(_add_rows if add else _max_rows)),
        "rows by owner": on_a_copy(_parallel(_owned_rows), threads, add),
    }
