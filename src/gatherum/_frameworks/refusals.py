"""Reject arrays of other frameworks and values that are not in memory, with advice.

Otherwise, NumPy would read a lazy array completely, copy an array from a device, or drop a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gatherum._model.errors import frameworks as framework_errors

from .registry import CUDA, OURS, WHOLE, adapter_of, foreign_type

# Tuple types of a framework that represent one array, and the text that tells users how to get
# their values.
_TUPLES = {"torch.nn.utils.rnn.PackedSequence": "write {}.data for its values"}
# The advice for data with nulls, for each library: code that fills or drops the nulls, and code
# that converts them to NaN. pyarrow tables have no method `fill_null`.
_WITHOUT_NULLS = {
    "pyarrow": ("{0}.fill_null(value) or {0}.drop_null()", "numpy.asarray({0})"),
    "pyarrow table": ("{0}.drop_null()", "numpy.asarray({0})"),
    "polars": ("{0}.fill_null(value) or {0}.drop_nulls()", "{0}.to_numpy()"),
    "pandas": ("{0}.fillna(value) or {0}.dropna()", "{0}.to_numpy(float, na_value=numpy.nan)"),
}


def refuse(op: str, operand: str, value: object) -> None:
    """Raise TypeError with advice for foreign arrays and objects that are not in memory."""
    array_type = type(value)
    if origin := foreign_type(array_type):
        is_array = origin.source is CUDA or hasattr(array_type, "__array__")
        is_array = is_array or (not origin.source.package and adapter_of(array_type) is not None)
        instead = origin.source.to_numpy.format(operand) if is_array else ""
        raise framework_errors.foreign_array(op, operand, origin.name, instead)
    if not issubclass(array_type, OURS) and (advice := _reading(value)):
        root = str(array_type.__module__).partition(".")[0]
        name = f"{root}.{array_type.__name__}"
        raise framework_errors.foreign_array(op, operand, name, advice.format(operand))


def refuse_held(op: str, operand: str, value: Iterable[object], item_type: type) -> None:
    """Raise TypeError for an array of another framework in a list or a tuple."""
    if origin := foreign_type(item_type):
        array_type, flat = type(value), all(foreign_type(type(item)) for item in value)
        stacked = f"write {origin.source.stack}({{}})" if flat else "make one array of them"
        instead = (whole_tuple(array_type) or stacked).format(operand)
        raise framework_errors.held_array(op, operand, array_type.__name__, origin.name, instead)


def whole_tuple(array_type: type) -> str:
    """Return the advice for a tuple type that represents one array, or "" for other types."""
    return _TUPLES.get(f"{array_type.__module__}.{array_type.__name__}", "")


def is_masked_tensor(array_type: type) -> bool:
    """Return True for the type of PyTorch's masked tensors."""
    return array_type.__name__ == "MaskedTensor" and array_type.__module__.startswith(
        "torch.masked"
    )


def _reading(value: object) -> str | None:
    """Return the advice for an object that must not be converted with `numpy.asarray`.

    NumPy would read such an object completely into memory, or convert it to an array that its
    framework no longer tracks. Return None for all other objects.
    """
    array_type = type(value)
    if "xarray" in _roots(array_type):
        held = held_by_xarray(value)
        if "xarray" in _roots(type(held)):
            return "write {}.values to read all of it"
        elsewhere = foreign_type(type(held)) or _reading(held)
        return "write {}.data, the array that it holds" if elsewhere else None
    graph = getattr(value, "__dask_graph__", None)  # Dask's protocol for collections
    if callable(graph) and graph() is not None:
        return "write {}.compute() to read all of it"
    # Check attributes of the type, because the columns of a table are attributes of the object.
    chunks = getattr(value, "chunks", None) if hasattr(array_type, "chunks") else None
    stored = isinstance(chunks, tuple) or hasattr(array_type, "chunk_layout")
    return WHOLE if stored else None


def held_by_xarray(value: object) -> object:
    """Return the array inside an xarray object, or the xarray object that reads a file."""
    held: Any = getattr(getattr(value, "variable", value), "_data", None)
    while "xarray" in _roots(type(held)) and hasattr(held, "array"):
        held = held.array
    return held


def _roots(array_type: type) -> set[str]:
    """Return the packages that define a type and its bases."""
    return {str(base.__module__).partition(".")[0] for base in array_type.__mro__}


def has_mask(value: object) -> bool:
    """Return True if an object other than a NumPy array has a mask."""
    if is_masked_tensor(type(value)):
        return True
    interface = getattr(value, "__array_interface__", None)
    return isinstance(interface, dict) and interface.get("mask") is not None


def refuse_nulls(
    op: str, operand: str, value: object, *, in_list: bool = False, integers: bool = False
) -> None:
    """Raise TypeError for a column with nulls; the message shows code that removes them.

    `in_list` is True if the column is an item of a list. `integers` is True if the operand accepts
    only integers, and therefore no NaN.
    """
    root = next(iter(_roots(type(value)) & _HAVE_NULLS.keys()), None)
    if root is None or not _HAVE_NULLS[root](value):
        return
    table = root == "pyarrow" and hasattr(value, "columns")
    without, as_nan = _WITHOUT_NULLS["pyarrow table" if table else root]
    instead = f"write {without}" if integers else f"write {without}, or {as_nan} for NaN"
    advice = instead.format("item" if in_list else operand)
    type_name = f"{root}.{type(value).__name__}"
    found = f"a list of {type_name} objects with nulls" if in_list else f"a {type_name} with nulls"
    raise framework_errors.has_nulls(f"{op}: `{operand}`", found, advice)


def _arrow_nulls(value: Any) -> bool:
    """Return True if a pyarrow array, or a column of a table, has nulls."""
    columns = value.columns if hasattr(value, "columns") else [value]
    return any(getattr(column, "null_count", 0) for column in columns)


def _polars_nulls(value: Any) -> bool:
    """Return True if a polars Series or DataFrame column has nulls, even inside array values."""
    type_name = type(value).__name__
    columns: list[Any] = []
    if type_name in ("DataFrame", "Series"):
        columns = value.get_columns() if type_name == "DataFrame" else [value]
    return any(map(_series_nulls, columns))


def _series_nulls(series: Any) -> bool:
    while not (count := series.null_count()) and _holds_arrays(series):
        series = series.explode()
    return bool(count)


def _holds_arrays(series: Any) -> bool:
    return type(getattr(series, "dtype", None)).__name__ == "Array"


def _pandas_nulls(value: Any) -> bool:
    """Return True if values of a pandas extension dtype are missing.

    Missing values of a NumPy dtype are NaN or NaT, which are accepted.
    """
    if not hasattr(value, "isna"):
        return False
    if hasattr(value, "columns"):
        is_extension = [not isinstance(dtype, np.dtype) for dtype in value.dtypes]
        return bool(value.loc[:, is_extension].isna().any(axis=None))
    own_dtype = not isinstance(getattr(value, "dtype", None), (np.dtype, type(None)))
    return own_dtype and bool(value.isna().any())


_HAVE_NULLS: dict[str, Callable[[Any], bool]] = {
    "pyarrow": _arrow_nulls,
    "polars": _polars_nulls,
    "pandas": _pandas_nulls,
}
