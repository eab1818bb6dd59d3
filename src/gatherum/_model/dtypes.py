"""Decide whether a dtype may be moved, used as an index, or reduced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from gatherum import _core
from gatherum._core import Reduction, Value

from . import errors
from .dtype_rows import ROWS, value_named
from .modes import CORE_MODES

DType = np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Extension:
    """A number type that NumPy lacks because no imported package has registered it.

    A plan needs only these attributes. They match the attributes of the ml_dtypes dtype.
    """

    name: str
    itemsize: int
    kind: ClassVar[str] = "V"
    isnative: ClassVar[bool] = True
    hasobject: ClassVar[bool] = False
    names: ClassVar[None] = None

    def __str__(self) -> str:
        return self.name


AnyDType: TypeAlias = DType | Extension


def code_of(dtype: AnyDType) -> _core.DType | None:
    """Return the core's number of a dtype that NumPy lacks, or None for any other dtype."""
    if dtype.kind != "V" or dtype.names is not None or not dtype.isnative:
        return None
    row = ROWS.get(dtype.name)
    return row.code if row is not None and row.nbytes == dtype.itemsize else None


def dtype_of(code: _core.DType) -> AnyDType:
    """Return the dtype for a number of the core, or an `Extension` if it is not registered."""
    if np.sctypeDict.get(code.name) is None:
        return Extension(code.name, ROWS[code.name].nbytes)
    return np.dtype(code.name)


def read_dtype(value: str | type | DType) -> AnyDType:
    """Return the dtype for a name or a type. Raises the errors of `numpy.dtype`."""
    row = ROWS.get(value) if isinstance(value, str) else None
    return np.dtype(value) if row is None else dtype_of(row.code)


def load_dtype(value: str | type | DType) -> AnyDType:
    """Return the dtype for a name or a type, importing ml_dtypes if it is needed.

    If ml_dtypes is not installed, return an `Extension`.
    """
    dtype = read_dtype(value)
    if isinstance(dtype, Extension):
        try:
            import ml_dtypes  # noqa: F401  # registers the name
        except ImportError:  # ml_dtypes is optional: a plan needs only an `Extension`
            return dtype
    return read_dtype(value)


def value_of(dtype: AnyDType) -> Value:
    """Return the value type of a dtype; `Value.none` if no reduction is defined for it."""
    if not dtype.isnative or (isinstance(dtype, np.dtype) and dtype.char in "gG"):
        return Value.none
    value = _VALUES.get(dtype.type) if isinstance(dtype, np.dtype) else None
    return value_named(dtype.name) if value is None else value


# Value types by scalar type. NumPy computes the name of a dtype in Python.
_VALUES = {np.dtype(name).type: value_named(name) for name, row in ROWS.items() if row.is_of_numpy}


def is_reducible(dtype: AnyDType, reduction: str) -> bool:
    """Return True if a reduction other than "none" is defined for the dtype."""
    return _core.has_meaning(value_of(dtype), Reduction[reduction])


def is_real_float(dtype: AnyDType) -> bool:
    """Return True for the floats whose NaN values kernels can skip: real ones, and halves."""
    return _core.is_real_float(value_of(dtype))


def index_fields(dtype: AnyDType, mode: str, negative: bool) -> dict[str, Any]:
    """Return the fields of a program that define how the core reads and resolves indices."""
    return {
        "mode": CORE_MODES[mode],
        "negative": bool(negative),  # callers may pass numpy.bool
        "index_width": dtype.itemsize,
        "index_signed": dtype.kind == "i",
        "index_swapped": not dtype.isnative,
    }


def accumulator_dtype(dtype: DType, reduction: str) -> DType:
    """Return the dtype in which a reduction of this dtype accumulates.

    An exact sum consists of flags followed by limbs (exact_limbs.hpp). An exact sum of complex
    numbers contains both for each part.
    """
    if _core.is_exact(Reduction[reduction]):
        part_count = 2 if dtype.kind == "c" else 1
        words = _core.sum_bytes(value_of(dtype), Reduction[reduction]) // (8 * part_count)
        fields: Any = [("flags", np.int64), ("limbs", np.int64, (words - 1,))]
        return np.dtype(fields) if part_count == 1 else np.dtype([("parts", fields, (2,))])
    name = _core.sum_type(value_of(dtype), Reduction[reduction]).name
    return dtype if name == value_of(dtype).name else np.dtype(name)


def neutral_item(dtype: AnyDType, reduction: str) -> bytes | None:
    """Return the bytes of the neutral element of a reduction's accumulators.

    Return None if the reduction has none for this dtype.
    """
    return _core.neutral_item(value_of(dtype), Reduction[reduction])


def is_index(dtype: AnyDType) -> bool:
    """Return True if an array of the dtype may hold indices."""
    return dtype.kind in "iu"


def narrow_index_dtype(size: int) -> DType:
    """Return int32 if it can hold the positions of a dimension of this size, else int64."""
    return np.dtype(np.int32 if size <= np.iinfo(np.int32).max else np.int64)


def check_movable(op: str, operand: str, dtype: AnyDType) -> None:
    """Raise TypeError unless elements are plain bytes, without objects or references."""
    if dtype.hasobject:
        raise errors.has_objects(op, operand, dtype)
    check_units(op, operand, dtype)


def check_units(op: str, operand: str, dtype: AnyDType) -> None:
    """Raise TypeError for datetimes with a step of 0 units.

    NumPy divides by the step, which crashes the process.
    """
    if isinstance(dtype, np.dtype) and _has_empty_step(dtype):
        raise errors.datetime_step_too_small(op, operand, dtype)


def _has_empty_step(dtype: DType) -> bool:
    if dtype.names is not None:
        return any(_has_empty_step(dtype[name]) for name in dtype.names)
    base = dtype.base
    return base.kind in "mM" and np.datetime_data(base)[1] == 0
