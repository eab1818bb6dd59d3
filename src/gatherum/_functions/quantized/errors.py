"""The messages of `gather_quantized`."""

from __future__ import annotations

from collections.abc import Iterable

from gatherum._model.errors import Shape

from .formats import NAME


def _listed(names: Iterable[object]) -> str:
    *first, last = map(str, names)
    return f"{', '.join(first)} or {last}" if first else last


def other_type(operand: str, choices: Iterable[str], found: str) -> TypeError:
    return TypeError(f"{NAME}: `{operand}` must be {_listed(choices)}, got {found}")


def other_bits(dtype: object, choices: Iterable[int], found: int) -> ValueError:
    return ValueError(
        f"{NAME}: `bits` must be {_listed(choices)} where `data` is {dtype}, got {found}"
    )


def no_zero_points(dtype: object) -> TypeError:
    return TypeError(f"{NAME}: `zero_points` must be None where `data` is {dtype}")


def other_scales(expected: Shape, found: Shape, data: Shape, axis: int, block: int) -> ValueError:
    return ValueError(
        f"{NAME}: `scales` must have shape {expected}, a scale for each {block} of dimension "
        f"{axis} of the values, {data}, got {found}"
    )


def other_zero_points(expected: Shape, found: Shape, in_byte: int) -> ValueError:
    packed = f", with {in_byte} in a byte as in `data`" if in_byte > 1 else ""
    return ValueError(
        f"{NAME}: `zero_points` must have shape {expected}, one for each scale{packed}, got {found}"
    )
