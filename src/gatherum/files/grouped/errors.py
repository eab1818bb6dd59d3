"""The messages of `reduce_file` that no function in memory has."""

from __future__ import annotations

from gatherum._model.errors import Shape
from gatherum._model.errors.audience import argument


def values_missing(op: str, func: str) -> ValueError:
    return ValueError(f"{op}: `values` must be given for {func!r}, got None; 'count' needs none")


def size_with_keys(op: str, value: object) -> ValueError:
    return ValueError(f"{op}: {argument('size')} must not be given for keys, got {value}")


def values_larger_than_memory(
    op: str, func: str, dtype: object, needed: int, memory: int
) -> ValueError:
    return ValueError(
        f"{op}: `func` {func!r} of dtype {dtype} needs all values in memory, {needed} bytes with "
        f"their copies; {argument('memory')} is {memory}"
    )


def accumulators_larger_than_memory(op: str, func: str, shape: Shape, memory: int) -> ValueError:
    return ValueError(
        f"{op}: `func` {func!r} needs its accumulators in memory, and those of shape {shape} need "
        f"more than a third of {argument('memory')}, {memory}"
    )


def result_larger_than_disk(
    op: str, shape: Shape, dtype: object, free: int, folder: str
) -> OSError:
    return OSError(
        f"{op}: the result, shape {shape} of dtype {dtype}, is larger than what is free in "
        f"{folder}, {free} bytes"
    )


def column_of_unknown_dtype(op: str, out: object, dtype: str) -> ValueError:
    return ValueError(f"{op}: {out} has no columns of {dtype}; write a .npy or .csv file")


def decimals_in_output(op: str, out: object) -> ValueError:
    return ValueError(
        f"{op}: {out} cannot contain decimals; write a .parquet, .arrow, .feather or .csv file"
    )


def result_of_several_dimensions(op: str, out: object, name: str, shape: Shape) -> ValueError:
    return ValueError(
        f"{op}: {out} takes results of one dimension, {name!r} has shape {shape}; write a .npy file"
    )
