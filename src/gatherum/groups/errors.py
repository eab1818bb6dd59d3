"""The error messages of `gatherum.groups`, each defined once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from gatherum._model.errors import Shape, not_an_index_dtype, undefined_for_dtype
from gatherum._model.errors.audience import command_hint
from gatherum._model.errors.texts import indexed, short

KEYS = "number other keys with gatherum.groups.factorize(keys)"
DECIMALS = "write decimals as integers, such as cents"


class InvalidGroupError(IndexError):
    """Signals that a group is invalid. The caller raises the error for the first invalid group."""


def not_groups(op: str, dtype: Any, operand: str = "groups") -> TypeError:
    """Create the error for groups that are not integers. In the command, it adds advice on keys."""
    error = not_an_index_dtype(op, dtype, False, operand)
    letter = getattr(dtype, "kind", "")
    text = DECIMALS if letter == "f" else KEYS if letter in ("S", "U", "T", "M", "m", "V") else ""
    return TypeError(f"{error}{command_hint(text)}") if text else error


def not_defined(op: str, func: str, dtype: object, needs: object = None) -> Exception:
    suffix = "" if needs is None else f"; it needs {needs}"
    return undefined_for_dtype(op, "func", func, dtype, suffix)


def unknown_function(
    op: str,
    value: object,
    choices: Sequence[str],
    aliases: Mapping[str, str],
    transforms: Collection[str] = (),
) -> ValueError:
    """Return the error for an unknown function, with the names that are closest to it."""
    suffix = ""
    if isinstance(value, str):
        close = " or ".join(map(repr, get_close_matches(value, choices, 3)))
        if aliases.get(value) in choices:
            suffix = f"; its name here is {aliases[value]!r}"
        elif value in transforms:
            suffix = "; gatherum.groups.transform has it"
        elif close:
            suffix = f"; did you mean {close}?"
    path = op if "." in op else f"files.{op}"
    return ValueError(
        f"{op}: `func` must be a function that help(gatherum.{path}) lists, got {short(value)}"
        f"{suffix}"
    )


def sparse_groups(op: str, group_count: int, entries: int) -> ValueError:
    return ValueError(
        f"{op}: `size` must be given for {entries} values in {group_count} groups; or renumber "
        "them: groups, labels = gatherum.groups.factorize(groups)"
    )


def no_keys(op: str) -> TypeError:
    return TypeError(f"{op}: an array of keys must be given")


def other_key_shape(op: str, position: int, expected: Shape, found: Shape) -> ValueError:
    return ValueError(
        f"{op}: `keys[{position}]` must have the shape of `keys[0]`, {expected}, got {found}"
    )


def not_ordered(op: str, position: int, error: Exception) -> TypeError:
    return TypeError(f"{op}: `keys[{position}]` must have values that compare: {error}")


def too_many_cells(op: str, count: int) -> ValueError:
    return ValueError(
        f"{op}: results for {count} groups and columns need 64-bit numbers; set jax_enable_x64"
    )


def cumulates_on_cpu(reduction: str, device: str, instead: str) -> NotImplementedError:
    func = "cum" + {"add": "sum", "mul": "prod"}.get(reduction, reduction)
    return NotImplementedError(
        f"groups.transform: {func!r} is implemented for values on the CPU, got {device}; write "
        f"{instead}"
    )


def no_function(op: str, value: object) -> ValueError:
    return ValueError(f"{op}: `func` must name at least 1 function, got {value!r}")


def not_taken(op: str, argument: str, func: str, takers: Sequence[str]) -> ValueError:
    forms = "their nan forms" if len(takers) > 1 else "its nan form"
    return ValueError(
        f"{op}: `{argument}` must be None for {func!r}; it is an argument of "
        f"{', '.join(map(repr, takers))} and {forms}"
    )


def not_real(op: str, operand: str, dtype: object) -> TypeError:
    return TypeError(f"{op}: `{operand}` must be real numbers, got dtype {dtype}")


def not_in_dtype(op: str, where: str, dtype: object, value: object) -> ValueError:
    return ValueError(
        f"{op}: numbers must be in the range of `dtype`, {dtype}, got {value} ({where})"
    )


def not_quantiles(op: str, value: object) -> ValueError:
    return ValueError(
        f"{op}: `q` must be a number in [0, 1], or a list of them, for 'quantile', got "
        f"{short(value)}"
    )


def one_quantile(op: str, operands: str) -> ValueError:
    return ValueError(f"{op}: `q` must be one number for {operands}")


def no_ddof(op: str, value: int) -> ValueError:
    return ValueError(f"{op}: `ddof` must be 0 with `weights`, got {value}")


def other_groups(
    op: str, along: int, whole: Shape, found: Shape, operand: str = "groups"
) -> ValueError:
    instead = f", or that of `values`, {whole}" if len(whole) > 1 else ""
    return ValueError(f"{op}: `{operand}` must have shape ({along},){instead}, got {found}")


def empty_group(
    op: str, func: str, dtype: object, group: int, coordinates: Sequence[int]
) -> ValueError:
    where = f" ({indexed('result', coordinates)})" if len(coordinates) > 1 else ""
    return ValueError(
        f"{op}: `fill_value` must be given for {func!r} of dtype {dtype}, which has no value for "
        f"an empty group: group {group} is empty{where}"
    )


def not_for_decimals(op: str, func: str, names: Sequence[str]) -> TypeError:
    *others, last = map(repr, names)
    return TypeError(
        f"{op}: `func` {func!r} is not defined for decimals, only {', '.join(others)} and {last} "
        "are; convert the values to floats or integers"
    )


def no_argument_of_decimals(op: str, argument: str) -> TypeError:
    return TypeError(f"{op}: `{argument}` must not be given for decimals")


def not_a_decimal(op: str, value: object, where: Sequence[Any]) -> TypeError:
    return TypeError(
        f"{op}: `values` must be finite decimals without missing values, got {value!r} "
        f"({indexed('values', where)})"
    )


def long_decimal(op: str, value: object, scale: int, where: Sequence[Any]) -> ValueError:
    return ValueError(
        f"{op}: `values` must have at most 38 digits, with {scale} after the point, got {value} "
        f"({indexed('values', where)})"
    )


def not_a_decimal_fill(op: str, value: object) -> TypeError:
    return TypeError(f"{op}: `fill_value` must be a Decimal or an integer, got {value!r}")


def unknown_groups(op: str) -> RuntimeError:
    return RuntimeError(
        f"{op}: `fill_value` must be given for arrays of Dask, and where JAX or torch traces a "
        "call, because it is not known there which groups are empty"
    )


def other_result(op: str, func: str, expected: str, found: object) -> TypeError:
    got = found if isinstance(found, np.dtype) else short(found)
    return TypeError(f"{op}: `dtype` must be {expected} for {func!r}, got {got}")


def other_fill(op: str, func: str, dtype: object, value: object) -> ValueError:
    return ValueError(
        f"{op}: `fill_value` must convert to {dtype}, the dtype of {func!r}, got {short(value)}"
    )


def several_fills(op: str, value: object) -> ValueError:
    return ValueError(f"{op}: `fill_value` must be one item, got {short(value)}")


def needs_axis(op: str, found: int) -> ValueError:
    return ValueError(f"{op}: `a` must have at most 1 dimension without `axis`, got {found}")


def no_scalar(op: str, func: str) -> ValueError:
    return ValueError(
        f"{op}: `a` must have 1 dimension for {func!r}: a scalar goes with 'sum', 'prod' and 'len'"
    )


def other_length(op: str, expected: Sequence[int], found: Shape, axis: int | None) -> ValueError:
    where = "" if axis is None else f", of `a` along axis {axis}"
    return ValueError(f"{op}: `group_idx` must have shape {tuple(expected)}{where}, got {found}")


def other_group_shape(op: str, found: Shape, whole: Shape) -> ValueError:
    return ValueError(f"{op}: `group_idx` must broadcast to the shape of `a`, {whole}, got {found}")


def no_rows(op: str, found: Shape) -> ValueError:
    return ValueError(f"{op}: `group_idx` must have at least 1 row, got shape {found}")


def other_sizes(op: str, expected: int | None, found: object) -> ValueError:
    what = "an integer or None" if expected is None else f"{expected} integers or None"
    return ValueError(f"{op}: `size` must be {what}, got {found!r}")
