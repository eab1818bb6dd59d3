"""Draws calls of functions over groups: values with ties or arbitrary bits, groups, arguments."""

import numpy as np
import pytest

import gatherum
from gatherum.groups import functions
from strategies import MODES, same_bits, value_bytes


def has_derivatives(name):
    """Return True if results have the dtype of floats: they are no counts, positions or ranks."""
    row = functions.FUNCTIONS.get(name) or functions.TRANSFORMS[name]
    dtypes = [np.dtype(np.float32), np.dtype(np.float64)]
    return [row.result(dtype) for dtype in dtypes] == dtypes


def hostile(rng, dtype, shape):
    items = value_bytes(rng, dtype, int(np.prod(shape)))
    return np.frombuffer(items, dtype).reshape(shape)


def values_of(rng, dtype, shape):
    """Return values with ties, or of arbitrary bits."""
    if rng.random() < 0.5 and functions.FUNCTIONS["sum"].accepts(dtype):
        return rng.integers(0, 4, shape).astype(dtype)
    if dtype.kind in "mM" and rng.random() < 0.5:
        return date_values(rng, dtype, shape)
    return hostile(rng, dtype, shape)


def date_values(rng, dtype, shape):
    """Return dates with ties, including both extremes and NaT."""
    numbers = rng.choice([-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 1], shape)
    return np.asarray(numbers).view(np.dtype(dtype).newbyteorder("=")).astype(dtype)


def near_ties(rng, dtype):
    """Return float64 at ties of a 16-bit type and next to them, including tiny and large ones."""
    codes = rng.integers(1, np.array(np.inf, dtype).view("u2"), 200, dtype="u2")
    codes[:3] = 1, 2, np.array(np.inf, dtype).view("u2") - 1
    lower, upper = codes.view(dtype).astype(float), (codes + np.uint16(1)).view(dtype).astype(float)
    ties = np.where(np.isinf(upper), lower * (1 + 2.0**-30), (lower + upper) / 2)
    beside = [ties, np.nextafter(ties, 0), np.nextafter(ties, np.inf), ties * (1 + 2.0**-26)]
    return np.concatenate([*beside, -beside[1], [2.0**140, 2.0**-200, -(2.0**1000), 0.0, 1.0]])


def laid_out(rng, array):
    """Copy an array to other strides."""
    if rng.random() < 0.4 and array.ndim > 1:
        return np.asfortranarray(array)
    if rng.random() < 0.4:
        return np.repeat(array, 2, axis=0)[::2][::-1][::-1] if array.ndim else array
    return array


def outcome(function, *args, **more):
    """Return the result, or the type of the exception."""
    try:
        return function(*args, **more)
    except (TypeError, ValueError, IndexError) as error:
        return type(error)


def same(one, other):
    if isinstance(one, type) or isinstance(other, type):
        return one is other
    return same_bits(one, other)


def call(rng):
    """Draw the shape of values, their groups, and arguments."""
    shape = [(23,), (7, 3), (2, 6, 2), (0,), (3, 0), (1,)][rng.integers(6)]
    axis = int(rng.integers(-len(shape), len(shape)))
    size = int(rng.integers(1, 5))
    entry_dtype = np.dtype(["i8", "i1", "u2", "u8", ">i4"][rng.integers(5)])
    beyond = rng.random() < 0.3
    whole = rng.random() < 0.4
    entries = rng.integers(0, size + beyond, shape if whole else shape[axis]).astype(entry_dtype)
    if entry_dtype.kind == "i" and rng.random() < 0.3:
        entries -= size
    more = {
        "axis": axis,
        "size": None if rng.random() < 0.2 else size,
        "mode": MODES[rng.integers(len(MODES))],
        "negative": bool(rng.random() < 0.5),
    }
    return shape, entries, more


def defined_pairs(dtypes, funcs, number=1, every=1, first=0):
    """Pair each function with each dtype. A number of dtypes that the function is defined for run
    every time, which are different for the next function; all other pairs run before a release.
    With `every`, only each such function from the `first` on runs every time.
    """
    rows, pairs = functions.FUNCTIONS | functions.TRANSFORMS, []
    for j, func in enumerate(funcs):
        defined = [dtype for dtype in dtypes if rows[func].accepts(dtype)]
        runs = range(number) if j % every == first else ()
        chosen = [defined[(j + k) % len(defined)] for k in runs]
        for dtype in dtypes:
            marks = [] if dtype in chosen else [pytest.mark.release]
            pairs.append(pytest.param(dtype, func, marks=marks, id=f"{func}-{dtype}"))
    return pairs


def run(values, groups, func, *, module=gatherum.groups, **more):
    """Call the function of a name, from either of the two modules."""
    if func.endswith("quantile"):
        more.setdefault("q", 0.3)
    if func in functions.TRANSFORMS:
        for name in ("ddof", "fill_value"):
            more.pop(name, None)
        return module.transform(values, groups, func, **more)
    return module.reduce(values, groups, func=func, **more)
