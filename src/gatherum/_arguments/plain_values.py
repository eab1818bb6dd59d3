"""Convert arguments that are not arrays, such as integers, sizes, names and booleans."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping

import numpy as np

from gatherum._model import errors
from gatherum._model.call import Attributes, FoldRule
from gatherum._model.errors import Shape
from gatherum._model.modes import MODES
from gatherum._model.operators import OPERATORS
from gatherum._model.reductions import ALIASES, REDUCTIONS
from gatherum._model.shape_limits import MAX_BYTES


def as_axis(op: str, value: object) -> int:
    """Return `axis` or `batch_dims` as an int."""
    try:
        return operator.index(value)  # type: ignore[arg-type]  # else it raises
    except TypeError:
        attribute, instead = OPERATORS[op].attribute, _keyword(op, value)
        raise errors.not_an_integer(op, attribute, value, instead) from None


def _keyword(op: str, value: object) -> str:
    """Return the keyword for a name passed instead of a number, or "" for any other value."""
    if not isinstance(value, str):
        return ""
    word = ALIASES.get(value, value)
    if OPERATORS[op].scatters and word in REDUCTIONS:
        return f"reduction={word!r}"
    return f"mode={word!r}" if word in MODES else ""


def as_integer(op: str, name: str, value: object) -> int:
    """Return an integer as an int."""
    try:
        return operator.index(value)  # type: ignore[arg-type]  # else it raises
    except TypeError:
        raise errors.not_an_integer(op, name, value) from None


def as_size(op: str, name: str, value: object, least: int = 0) -> int:
    """Return a number of items as an int, or raise ValueError if it is less than `least`."""
    size = as_integer(op, name, value)
    if size < least:
        raise errors.too_small(op, name, least, size)
    return size


def as_shape(op: str, name: str, value: Iterable[object]) -> Shape:
    """Return sizes as a tuple of int."""
    try:
        shape = tuple(operator.index(n) for n in value)  # type: ignore[arg-type]  # else it raises
    except TypeError:
        raise errors.not_a_shape(op, name, value) from None
    if any(n < 0 for n in shape):
        raise errors.negative_size(op, name, shape)
    return shape


def as_strides(op: str, operand: str, shape: Shape, value: object) -> Shape:
    """Return byte strides as a tuple of int, one for each dimension."""
    try:
        strides = tuple(operator.index(step) for step in value)  # type: ignore[attr-defined]
    except TypeError:
        strides = ()
    last_offset = sum(abs(step) * max(n - 1, 0) for n, step in zip(shape, strides, strict=False))
    far = max([last_offset, *map(abs, strides)])
    if len(strides) != len(shape) or far > MAX_BYTES:
        raise errors.other_strides(op, operand, len(shape), value)
    return strides


def as_choice(
    op: str,
    name: str,
    value: object,
    choices: tuple[str, ...],
    aliases: Mapping[str, str] = ALIASES,
) -> str:
    """Return one of the allowed names, interned. The error for an alias suggests the right name."""
    if not isinstance(value, str) or value not in choices:
        raise errors.not_one_of(op, name, value, choices, aliases)
    return choices[choices.index(value)]


def as_boolean(op: str, name: str, value: object) -> bool:
    """Return a Python or NumPy boolean as a Python boolean; other values raise TypeError."""
    if not isinstance(value, (bool, np.bool_)):
        raise errors.not_a_boolean(op, name, value)
    return bool(value)


def as_attributes(
    op: str, axis: object, reduction: object, include_self: object, mode: object, negative: object
) -> Attributes:
    """Create the attributes of a call from its arguments, in the order of the core's functions."""
    return Attributes(
        op,
        as_axis(op, axis),
        reduction=as_choice(op, "reduction", reduction, REDUCTIONS),
        include_self=as_boolean(op, "include_self", include_self),
        mode=as_choice(op, "mode", mode, MODES),
        negative=as_boolean(op, "negative", negative),
    )


def attributes_from(
    op: str, keywords: Mapping[str, object], allowed: tuple[str, ...]
) -> Attributes:
    """Create the attributes of a call from keyword arguments.

    Raise TypeError for a keyword that is not allowed.
    """
    for name in keywords:
        if name not in allowed:
            raise errors.unknown_attribute(op, name, allowed)
    arguments = FoldRule()._asdict() | Attributes(op).keywords | {**keywords}
    names = OPERATORS[op].attribute, *FoldRule._fields, "mode", "negative"
    return as_attributes(op, *(arguments[name] for name in names))
