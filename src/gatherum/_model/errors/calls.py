"""The error messages of calls on arrays in memory: arguments, dtypes, `out` and indices.

`shapes` contains the messages about ranks, shapes and sizes.

C programs cannot call this module: ``core/c_api/fault_messages.cpp`` and ``interface.hpp`` contain
the messages for them. In Python, sizes may be symbols of a traced graph, and messages include
advice. The messages are therefore written in both languages; `tests/c_interface/test_c_programs.py`
compares them.

Each function returns the exception to raise. Its message names the operator, the operand, the
expected and the actual value, and the position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gatherum._core import Reduction, is_exact
from gatherum._model.dtype_rows import has_arithmetic
from gatherum._model.modes import MOVING
from gatherum._model.named_bytes import named_bytes
from gatherum._model.reductions import ALIASES

from .audience import advice, hint
from .texts import Shape, choices, indexed, short


def unknown_operator(op: object, operators: Sequence[str], caller: str = "plan") -> ValueError:
    return ValueError(f"{caller}: `op` must be one of {choices(operators)}, got {short(op)}")


def unknown_attribute(op: str, name: str, names: Sequence[str]) -> TypeError:
    suffix = hint("write axis=") if name == "dim" and "axis" in names else ""
    return TypeError(f"{op}: unknown attribute {name!r}; it takes {choices(names)}{suffix}")


def unknown_argument(op: str, unknown: Mapping[str, object], *, has_axis: bool = True) -> TypeError:
    """Create the error for an unknown keyword; torch and xarray use `dim` for `axis`."""
    name = next(iter(unknown))
    suffix = hint("write axis=" if name == "dim" and has_axis else "")
    return TypeError(f"{op}: unknown argument {name!r}{suffix}")


def missing_folder(path: object, folder: str) -> FileNotFoundError:
    return FileNotFoundError(f"{path}: the directory {folder} does not exist")


def not_an_integer(op: str, name: str, value: object, instead: str = "") -> TypeError:
    suffix = hint(f"write {instead}" if instead else "")
    return TypeError(f"{op}: `{name}` must be an integer, got {short(value)}{suffix}")


def not_a_boolean(op: str, name: str, value: object) -> TypeError:
    return TypeError(f"{op}: `{name}` must be True or False, got {short(value)}")


def not_one_of(
    op: str,
    name: str,
    value: object,
    allowed: Sequence[str],
    aliases: Mapping[str, str] = ALIASES,
) -> ValueError:
    right_name = aliases.get(value) if isinstance(value, str) else None
    suggestion = f"; its name here is {right_name!r}" if right_name in allowed else ""
    return ValueError(
        f"{op}: `{name}` must be one of {choices(allowed)}, got {short(value)}{suggestion}"
    )


def out_of_range(op: str, name: str, value: int, low: int, high: int) -> ValueError:
    return ValueError(f"{op}: `{name}` must be in [{low}, {high}), got {value}")


def not_convertible_to_array(op: str, operand: str, why: object) -> ValueError:
    return ValueError(f"{op}: `{operand}` cannot be converted to an array: {why}")


def masked_array(op: str, operand: str) -> TypeError:
    return TypeError(f"{op}: `{operand}` must not be a masked array: its mask would be lost")


def takes_no_updates(op: str, updates: object) -> TypeError:
    return TypeError(
        f"{op}: `updates` must be None, got {short(updates)}; only scatters have this operand"
    )


def not_array_like(op: str, operand: str, value: object) -> TypeError:
    return TypeError(f"{op}: `{operand}` must be an array, got {type(value).__name__}")


def holds_arrays(op: str, value: object, operand: str = "indices") -> TypeError:
    if operand == "indices":
        suggestion = advice(
            "np.argwhere, or np.stack(arrays, -1)", "torch.argwhere, or torch.stack(tensors, -1)"
        )
        suggestion += ", makes index tuples"
    else:
        suggestion = "np.concatenate or np.stack makes one"
    return TypeError(
        f"{op}: `{operand}` must be one array, got a {type(value).__name__} that holds arrays; "
        f"{suggestion}"
    )


def has_objects(op: str, operand: str, dtype: object) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must have a dtype without objects or references, got {dtype}"
    )


def has_decimals(op: str, operand: str) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must have a dtype without objects or references, got decimals; count "
        "in integers of the smallest unit, such as cents: "
        f"[int(one.scaleb(2)) for one in {operand}]"
    )


def datetime_step_too_small(op: str, operand: str, dtype: object) -> TypeError:
    return TypeError(f"{op}: `{operand}` must have datetimes in steps of at least 1, got {dtype}")


def not_an_index_dtype(op: str, dtype: Any, tuples: bool, operand: str = "indices") -> TypeError:
    if tuples:
        suggestion = f"{advice('np', 'torch')}.argwhere makes index tuples"
    else:
        suggestion = f"{advice('np.flatnonzero', 'mask.flatten().nonzero()[:, 0]')} makes indices"
    mask = dtype.kind == "b" and operand == "indices"
    suffix = hint(f"{suggestion} of a mask" if mask else "")
    if dtype.kind in "bf" and not mask:
        suffix = hint(f"write {operand}.{advice('astype(np.int64)', 'to(torch.int64)')}")
    if operand in ("groups", "group_idx") and dtype.kind in "OSTUMm":
        suffix = hint(f"{operand}, keys = gatherum.groups.factorize({operand}) numbers keys")
    return TypeError(f"{op}: `{operand}` must have an integer dtype, got {dtype}{suffix}")


def too_wide_index(op: str, operand: str, value: int, position: Sequence[int]) -> ValueError:
    at = f" ({indexed(operand, position)})" if position else ""
    return ValueError(f"{op}: `{operand}` must be in [-2**63, 2**63), got {value}{at}")


def other_dtype(
    op: str, operand: str, expected: object, found: object, *, data: str = "data"
) -> Exception:
    if dtype_name := named_bytes(expected) or named_bytes(found):
        return needs_ml_dtypes(op, dtype_name)
    named = operand in ("updates", "weights")
    cast = advice("astype", "to")
    suffix = hint(f"write {operand}.{cast}(data.dtype)" if named else "")
    return TypeError(
        f"{op}: `{operand}` must have the dtype of `{data}`, {expected}, got {found}{suffix}"
    )


def not_convertible(op: str, operand: str, expected: object, value: object) -> Exception:
    if dtype_name := named_bytes(expected):
        return needs_ml_dtypes(op, dtype_name)
    return TypeError(
        f"{op}: `{operand}` must convert to the dtype of `data`, {expected}, got {short(value)}"
    )


def needs_ml_dtypes(op: str, dtype_name: object) -> ImportError:
    return ImportError(f"{op}: {dtype_name} needs ml_dtypes: pip install ml_dtypes")


def loses_kind(op: str, operand: str, expected: object, numbers: str, value: object) -> ValueError:
    return ValueError(
        f"{op}: `{operand}` must be {numbers} where `data` is {expected}, got {short(value)}"
    )


def does_not_fit(
    op: str, operand: str, dtype: object, value: object, rounds: bool = False
) -> Exception:
    if dtype_name := named_bytes(dtype):
        return needs_ml_dtypes(op, dtype_name)
    suffix = hint(f"write {operand}.item() to round it" if rounds else "")
    return ValueError(
        f"{op}: `{operand}` must convert exactly to the dtype of `data`, {dtype}, "
        f"got {short(value)}{suffix}"
    )


def not_finite(op: str, operand: str, dtype: object, value: object) -> ValueError:
    return ValueError(
        f"{op}: `{operand}` must stay finite in the dtype of `data`, {dtype}, got {short(value)}"
    )


def undefined_for_dtype(
    op: str, argument: str, name: str, dtype: object, suffix: str
) -> ImportError | TypeError:
    """Create the error for a reduction, or a function of groups, that a dtype does not have."""
    dtype_name = named_bytes(dtype)
    if dtype_name is not None and has_arithmetic(dtype_name):
        return needs_ml_dtypes(op, dtype_name)
    dtype = dtype_name or dtype
    return TypeError(f"{op}: `{argument}` {name!r} is not defined for dtype {dtype}{suffix}")


def not_reducible(op: str, reduction: str, dtype: object, has_updates: bool = False) -> Exception:
    swapped = isinstance(dtype, np.dtype) and not dtype.isnative
    advised = "write data.astype(data.dtype.newbyteorder('='))" if swapped else ""
    advised += ", and the same for updates" if swapped and has_updates else ""
    if is_exact(Reduction[reduction]) and not swapped:
        advised = (
            "it supports only floats and complex numbers; 'add' sums integers without rounding"
        )
    return undefined_for_dtype(op, "reduction", reduction, dtype, hint(advised))


def no_inverse(op: str) -> NotImplementedError:
    return NotImplementedError(f"{op}: has no derivative, because it has no inverse operator")


def no_derivative(reduction: str) -> NotImplementedError:
    return NotImplementedError(
        f"no derivative of `reduction` {reduction!r} is defined: gatherum._derivatives has "
        "no factors for it"
    )


def not_a_dtype(op: str, operand: str, value: object) -> TypeError:
    return TypeError(f"{op}: `{operand}` must have a dtype that NumPy reads, got {short(value)}")


def not_a_plain_array(op: str, operand: str, value: object) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must be a numpy.ndarray without a mask, got {type(value).__name__}"
    )


def out_not_a_numpy_array(op: str, out: object) -> TypeError:
    return TypeError(f"{op}: `out` must be a numpy.ndarray, got {type(out).__name__}")


def out_read_only(op: str) -> ValueError:
    return ValueError(f"{op}: `out` must be writable, got a read-only array")


def out_overlaps(op: str, operand: str) -> ValueError:
    return ValueError(f"{op}: `out` must not share memory with `{operand}`")


def out_overlaps_itself(op: str, shape: Shape, strides: Shape) -> ValueError:
    return ValueError(
        f"{op}: `out` must not overlap itself, got shape {shape} with strides {strides}"
    )


def operand_changed(op: str, operand: str) -> ValueError:
    return ValueError(f"{op}: `{operand}` must keep its shape and memory during the call")


def index_out_of_bounds(
    op: str,
    value: object,
    axis: int,
    size: int,
    position: Sequence[object] | None,
    mode: str,
    operand: str = "indices",
    *,
    has_place: bool = True,
) -> IndexError:
    """Create the error for the first invalid index.

    `position` is None if another thread changed the index during the call. If not `has_place`, the
    message contains no position.
    """
    if position is None:
        return IndexError(f"{op}: an index was invalid, but `{operand}` changed during the call")
    if mode in MOVING:
        problem = f"cannot be {MOVING[mode].participle} into axis {axis}, which has size {size}"
    else:
        problem = f"is out of bounds for axis {axis} of size {size}"
    where = f" ({indexed(operand, position)})" if has_place else ""
    return IndexError(f"{op}: index {value} {problem}{where}")


def group_out_of_bounds(
    op: str,
    value: object,
    size: int,
    position: Sequence[object] | None,
    mode: str,
    operand: str,
    *,
    negative: bool,
) -> IndexError:
    """Create the error for the first invalid group.

    `position` is None if another thread changed the group during the call. If `negative`, groups in
    [-`size`, 0) are valid, too.
    """
    if position is None:
        return IndexError(
            f"{op}: an entry was not a valid group, but `{operand}` changed during the call"
        )
    valid = f"[{-size if negative else 0}, {size})"
    if mode in MOVING:
        problem = f"cannot be {MOVING[mode].participle} into {valid}, which is empty"
    else:
        problem = f"is not in {valid}"
    return IndexError(f"{op}: group {value} {problem} ({indexed(operand, position)})")


def other_layout(op: str, operand: str, expected: object, found: object) -> ValueError:
    return ValueError(f"{op}: the plan was made for `{operand}` {expected}, got {found}")
