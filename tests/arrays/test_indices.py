"""The core resolves, numbers and checks index values as the oracle's plain loop does."""

import itertools
import math

import numpy as np
import pytest

from gatherum._arguments import indices
from gatherum._model.operators import OPERATORS
from gatherum.reference.positions import MODES, _resolve

DTYPES = [order + kind + width for kind in "iu" for width in "1248" for order in "<>"]
LARGE = 2**40 + 7
SIZES = (0, 1, 2, 5, 100, LARGE, 2**63 - 1)


def edge_values(dtype, size):
    """Return the values of a dtype at which some rule changes, as Python integers."""
    bounds = np.iinfo(dtype)
    near = {bounds.min, bounds.max, 0, -1, size, -size, 2 * size, 2**31, 2**32, 2**63}
    values = {n + step for n in near for step in (-2, -1, 0, 1, 2)}
    return sorted(v for v in values if bounds.min <= v <= bounds.max)


def layouts(values):
    """Yield arrays of the same values in several memory layouts."""
    spread = np.zeros(2 * len(values), values.dtype)
    spread[::2] = values
    yield "contiguous", values
    yield "spread", spread[::2]
    yield "backwards", values[::-1].copy()[::-1]
    raw = np.zeros(values.nbytes + 1, np.uint8)
    raw[1:] = np.frombuffer(values.tobytes(), np.uint8)
    yield "unaligned", raw[1:].view(values.dtype)
    yield "columns", np.stack([values, values[::-1]], axis=1)
    yield "repeated", np.broadcast_to(values, (3, len(values)))
    yield "of no dimension", values[-1:].reshape(())
    yield "many", np.resize(values, 600)


def expected(values, size, mode, negative):
    known = {v: _resolve(v, size, mode, negative) for v in set(values.reshape(-1).tolist())}
    return [known[v] for v in values.reshape(-1).tolist()]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_value_resolves_as_in_the_reference(dtype):
    for size, mode, negative in itertools.product(SIZES, MODES, (True, False)):
        edges = np.array(edge_values(dtype, size), dtype)
        for name, values in layouts(edges):
            before = values.tobytes()
            places = expected(values, size, mode, negative)
            positions, invalid = indices.resolve(values, size, mode, negative)
            case = name, size, mode, negative
            assert positions.dtype == np.int64 and positions.shape == values.shape, case
            assert positions.reshape(-1).tolist() == [p or 0 for p in places], case
            missing = [p is None for p in places]
            assert (invalid is not None) == any(missing), case
            assert invalid is None or invalid.reshape(-1).tolist() == missing, case
            assert values.tobytes() == before


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_first_invalid_index_is_the_reference_s(dtype):
    for size, mode, negative in itertools.product(SIZES, MODES, (True, False)):
        edges = np.array(edge_values(dtype, size), dtype)
        for name, values in layouts(edges):
            places = expected(values, size, mode, negative)
            result = indices.first_invalid(values, [size], mode, negative, tuples=False)
            if None not in places:
                assert result is None, (name, size, mode, negative)
                continue
            where = np.unravel_index(places.index(None), values.shape) if values.ndim else ()
            assert result == (tuple(map(int, where)), 0, int(values[where]))
            assert type(result.value) is int


@pytest.mark.parametrize("count", [1, 7, 256, 600, 20_000])
@pytest.mark.parametrize("dtype", ["<i8", ">u8", "<i4", "u1"])
def test_one_invalid_index_is_found_at_any_position(count, dtype):
    for place in {0, count // 2, count - 1}:
        values = np.ones(count, dtype)
        values[place] = 200
        assert indices.first_invalid(values, [100], "raise", True, False) == ((place,), 0, 200)
        positions, invalid = indices.resolve(values, 100, "raise", True)
        assert np.flatnonzero(invalid).tolist() == [place]
        assert positions[place] == 0 and positions.sum() == count - 1


@pytest.mark.parametrize("dtype", ["<i8", ">i8", "i1", "<u2", ">u8"])
def test_the_first_invalid_component_of_a_tuple_is_found(dtype):
    sizes = 4, 100, 1
    valid = np.resize(np.array([[3, 99, 0], [0, 5, 0]], dtype), (300, 3))
    assert indices.first_invalid(valid, sizes, "raise", True, True) is None
    for row, component in itertools.product((0, 17, 299), range(3)):
        tuples = valid.copy()
        tuples[row, component:] = 101  # the following components are invalid, too
        result = indices.first_invalid(tuples.reshape(3, 100, 3), sizes, "drop", True, True)
        assert result == (divmod(row, 100), component, 101)
        assert indices.first_invalid(tuples, sizes, "clip", True, True) is None
    result = indices.first_invalid(valid, (4, 0, 0), "wrap", True, True)
    assert result == ((0,), 1, 99)


def test_empty_indices_are_valid():
    for shape, tuples in (((0,), False), ((3, 0), True), ((0, 2), True), ((2, 0), False)):
        none = np.zeros(shape, np.int64)
        sizes = [0] * (shape[-1] if tuples else 1)
        assert indices.first_invalid(none, sizes, "raise", True, tuples) is None
        positions, invalid = indices.resolve(none, 0, "clip", True)
        assert positions.shape == shape and invalid is None


# An operator's name, the shapes of its space and of its indices, and its dimension attribute.
SPACES = [
    ("gather", (7,), (3, 4), 0),
    ("gather", (0,), (3,), 0),
    ("scatter_elements", (2, 5, 3), (2, 4, 3), 1),
    ("gather_elements", (2, 0), (2, 3), 1),
    ("gather_nd", (4, 5), (6, 2), 0),
    ("scatter_nd", (2, 3, 5), (2, 6, 2), 1),
    ("gather_nd", (2, 4), (2, 3, 1), 1),
    ("gather_nd", (2,), (2, 3, 0), 1),
    ("gather_nd", (4, 0), (3, 2), 0),
]


@pytest.mark.parametrize(("op", "space", "shape", "axis"), SPACES)
@pytest.mark.parametrize("dtype", ["<i8", ">i2", "u1"])
def test_entries_get_the_number_of_the_addressed_element(op, space, shape, axis, dtype):
    operator = OPERATORS[op]
    low = 0 if dtype[-2] == "u" else -9
    rng = np.random.default_rng(0)
    values = rng.integers(low, 9, shape).astype(dtype)
    tuples = values if operator.takes_tuples else values[..., None]
    sizes = space[axis : axis + tuples.shape[-1]]
    for mode, negative in itertools.product(MODES, (True, False)):
        numbers = indices.number_entries(operator, space, values, axis, mode, negative)
        for number, where in zip(numbers, np.ndindex(tuples.shape[:-1]), strict=True):
            entry = zip(tuples[where].tolist(), sizes, strict=True)
            places = [_resolve(value, size, mode, negative) for value, size in entry]
            before = where[:axis] if axis else ()
            behind = where[axis + 1 :] if operator.addressing.shares_back else ()
            at = (*before, *places, *behind)
            address = -1 if None in at else int(np.ravel_multi_index(at, space)) if at else 0
            assert number == address, (where, mode, negative)
        assert numbers.size == math.prod(tuples.shape[:-1])
