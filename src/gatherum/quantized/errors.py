"""The messages of `gather_quantized`."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import Shape
from .formats import CODES, NAME, RESULTS, SCALES


def _listed(names: Iterable[object]) -> str:
    *first, last = map(str, names)
    return f"{', '.join(first)} or {last}" if first else last


def not_quantized(dtype: object) -> TypeError:
    return TypeError(f"{NAME}: `data` must be {_listed(CODES)}, got {dtype}")


def not_a_scale(dtype: object) -> TypeError:
    return TypeError(f"{NAME}: `scales` must be {_listed(SCALES)}, got {dtype}")


def not_a_result(dtype: object) -> TypeError:
    return TypeError(f"{NAME}: `dtype` must be {_listed(RESULTS)}, got {dtype!r}")


def other_bits(dtype: object, choices: Iterable[int], found: int) -> ValueError:
    return ValueError(
        f"{NAME}: `bits` must be {_listed(choices)} where `data` is {dtype}, got {found}"
    )


def not_a_block(found: int) -> ValueError:
    return ValueError(f"{NAME}: `block_size` must be at least 1, got {found}")


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
