"""The error messages about accumulators, prepared calls, pictures and files."""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any

import numpy as np

from .texts import Shape


def not_an_accumulator(value: object) -> TypeError:
    return TypeError(
        f"Accumulator.merge: `other` must be an Accumulator, got {type(value).__name__}"
    )


def other_accumulator(name: str, expected: object, found: object) -> ValueError:
    return ValueError(
        f"Accumulator.merge: `other` must have the {name} of this accumulator, {expected}, "
        f"got {found}"
    )


def order_matters(reduction: str, dtype: np.dtype[Any]) -> ValueError:
    return ValueError(
        f"Accumulator.merge: accumulators of {reduction!r} of dtype {dtype} cannot be merged, "
        "because the result depends on the order of the updates"
    )


def too_many_updates(most: int) -> ValueError:
    return ValueError(f"Accumulator: an element can have at most {most} updates")


def damaged_state(why: object) -> ValueError:
    return ValueError(f"Accumulator: the pickled state cannot be read: {why}")


def not_a_picture(path: str | PathLike[str]) -> ValueError:
    return ValueError(f"explain: pictures are SVG: `path` must end in .svg, got {fspath(path)!r}")


def torn_accumulator() -> RuntimeError:
    return RuntimeError(
        "Accumulator: this process was forked while another thread used the accumulator, which may "
        "hold half of a batch"
    )


def not_a_regular_file(path: str | PathLike[str], file_type: str) -> OSError:
    return OSError(f"{fspath(path)}: is {file_type}, not a regular file")


def file_too_big(path: str | PathLike[str], limit: int) -> OSError:
    return OSError(f"{fspath(path)}: has more than {limit} bytes, which is too much to read whole")


def other_prepared_dtype(op: str, expected: object, found: object) -> TypeError:
    return TypeError(f"{op}: the call was prepared for `data` of {expected}, got {found}")


def other_prepared_shape(op: str, expected: Shape, found: Shape) -> ValueError:
    return ValueError(f"{op}: the call was prepared for `data` of shape {expected}, got {found}")
