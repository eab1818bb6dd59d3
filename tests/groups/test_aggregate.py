"""Gather, scale and reduce in one pass: the oracle's bits, on any threads, for any indices."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import gatherum
from canaries import guarded, guarded_copy, strays
from gatherum import reference
from strategies import INDEX_DTYPES, MODES, REDUCTIONS_OF, same_bits, value_bytes

pytestmark = pytest.mark.slow

THREADS = (1, 2, 3, 7)
FOLDS = [name for name in REDUCTIONS_OF if name != "none"]

ROWS = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
CASES = {
    "edges that meet, and a row without any": (
        (ROWS, [0, 1, 2, 0], [1, 1, 0, 3], 4, "add"),
        {},
        [[3, 30], [3, 30], [0, 0], [1, 10]],
    ),
    "weights": ((ROWS, [0, 1], [0, 0], 1, "max", [4, 1]), {}, [[4, 40]]),
    "one weight for all": ((ROWS, [0, 1], [0, 0], 1, "add", 2.0), {}, [[6, 60]]),
    "an empty product is one": ((ROWS, [0, 1], [0, 0], 2, "mul"), {}, [[2, 200], [1, 1]]),
    "means": ((ROWS, [0, 2, 1], [1, 1, 0], 2, "mean"), {}, [[2, 20], [2, 20]]),
    "no edge": ((ROWS, [], [], 2, "min"), {}, [[0, 0], [0, 0]]),
    "no row": ((ROWS, [], [], 0, "add"), {}, np.zeros((0, 2))),
    "single numbers": (([1, 2, 4], [0, 1, 2], [0, 0, 1], 2, "add"), {}, [3, 4]),
    "from the end": ((ROWS, [-1, -3], [-1, -1], 2, "add"), {}, [[0, 0], [4, 40]]),
    "edges left out": (
        (ROWS, [0, 3, 1], [0, 0, 2], 2, "add"),
        {"mode": "drop"},
        [[1, 10], [0, 0]],
    ),
    "edges moved": ((ROWS, [0, 9], [5, 0], 2, "add"), {"mode": "clip"}, [[3, 30], [1, 10]]),
    "edges in a square": (
        (ROWS, [[0, 1], [2, 0]], [[1, 0], [1, 1]], 2, "add"),
        {},
        [[2, 20], [5, 50]],
    ),
    "a value for rows without edges": (
        (ROWS, [0, 2], [2, 2], 3, "mean"),
        {"fill_value": np.nan},
        [[np.nan, np.nan], [np.nan, np.nan], [2, 20]],
    ),
    "a value instead of the empty product": (
        (ROWS, [0], [0], 2, "mul"),
        {"fill_value": 0},
        [[1, 10], [0, 0]],
    ),
    "columns": (
        (ROWS, [1, 0], [2, 2], 3, "add"),
        {"axis": -1},
        [[0, 0, 11], [0, 0, 22], [0, 0, 33]],
    ),
    "weights of two heads": (
        (
            np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]),
            [0, 1, 1],
            [0, 0, 1],
            2,
            "add",
            np.array([[1, 10], [100, 1000], [2, 3]]),
        ),
        {},
        [[[501, 602], [7030, 8040]], [[10, 12], [21, 24]]],
    ),
    "weights of two heads behind another axis": (
        (
            np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]),
            [0, 1],
            [0, 0],
            1,
            "add",
            np.array([[1, 10], [100, 1000]]),
        ),
        {"axis": 1},
        [[[301, 4020]], [[705, 8060]]],
    ),
    "a zero keeps its sign where one edge brings it": (
        (np.array([-0.0]), [0], [0], 1, "add"),
        {},
        [-0.0],
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("operators", [gatherum, reference], ids=["core", "oracle"])
def test_cases(name, operators):
    args, kwargs, answer = CASES[name]
    result = operators.aggregate(*args, **kwargs)
    assert same_bits(np.asarray(answer, result.dtype), result)


def _values(rng, shape, dtype, special):
    """Return values that include NaNs of any payload, infinities and zeros of both signs."""
    if special:
        items = value_bytes(rng, dtype, math.prod(shape))
        return np.frombuffer(items, dtype).reshape(shape)
    return rng.integers(0, 5, shape).astype(dtype)


@st.composite
def graphs(draw):
    """Draw the operands of a call in any layout, and its attributes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    reduction = draw(st.sampled_from(FOLDS))
    dtype = draw(st.sampled_from(REDUCTIONS_OF[reduction]))
    nodes, size = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    edges = draw(st.sampled_from([(7,), (0,), (), (2, 3), (1,), (300,), (3, 0, 2), (2, 2, 2)]))
    trailing = draw(st.sampled_from([(), (3,), (1,), (2, 2), (17,), (0,), (300,), (70,)]))
    mode = draw(st.sampled_from(MODES))
    low, high = draw(st.sampled_from([(0, 0), (-1, 0), (-2, 2)]))
    ends = []
    for n in (nodes, size):
        index_dtype = draw(st.sampled_from(INDEX_DTYPES))
        least = 0 if index_dtype.kind == "u" else low * n if low == -1 else low
        most = max(n + high, least + 1)
        ends.append(_laid_out(draw, rng.integers(least, most, edges).astype(index_dtype)))
    axis = draw(st.sampled_from([0, 0, *range(-1, len(trailing) + 1)]))
    shape = list(trailing)
    shape.insert(axis if axis >= 0 else len(trailing), nodes)
    data = _laid_out(draw, _values(rng, tuple(shape), dtype, draw(st.booleans())))
    weights = None
    if draw(st.booleans()):
        within = [n if draw(st.booleans()) else 1 for n in shape[axis:][1:]]
        parts = (*edges, *within[: draw(st.integers(0, 2))])
        shape = draw(st.sampled_from([edges, (), (1,) * len(edges), parts]))
        weights = _laid_out(draw, _values(rng, shape, dtype, draw(st.booleans())))
    args = (data, *ends, size, reduction, weights)
    item = _values(rng, (1,), dtype, special=dtype.kind != "b")[0]
    fill = draw(st.sampled_from([None, 0, dtype.type(1), item]))
    return args, {
        "mode": mode, "negative": draw(st.booleans()), "axis": axis, "fill_value": fill,
    }  # fmt: skip


def _laid_out(draw, array):
    """Copy an array into memory with canaries, in C order or with other strides."""
    way = draw(st.sampled_from(["packed", "spread", "backward", "columns first"]))
    strides = guarded(array.shape, array.dtype).strides
    if way == "spread":
        strides = tuple(3 * step for step in strides)
    elif way == "backward":
        strides = tuple(-step for step in strides)
    elif way == "columns first":
        strides = guarded(array.shape[::-1], array.dtype).strides[::-1]
    return guarded_copy(array, strides, draw(st.sampled_from([0, 16, 1])))


def _outcome(operators, args, kwargs, **more):
    try:
        return operators.aggregate(*args, **kwargs, **more)
    except IndexError as error:
        return error


@given(graphs(), st.sampled_from(THREADS))
@settings(max_examples=300)
def test_any_graph_has_the_bits_of_the_oracle(settings_of_threads, graph, threads):
    args, kwargs = graph
    gatherum.set_num_threads(threads)
    arrays = [array for array in args if isinstance(array, np.ndarray)]
    before = [array.tobytes() for array in arrays]
    expected, result = (_outcome(operators, args, kwargs) for operators in (reference, gatherum))
    assert [array.tobytes() for array in arrays] == before
    assert type(expected) is type(result)
    if isinstance(expected, np.ndarray):
        assert same_bits(expected, result)
        out = guarded(result.shape, result.dtype, tuple(2 * step for step in result.strides))
        assert gatherum.aggregate(*args, **kwargs, out=out) is out
        assert same_bits(expected, out)
        assert strays(out) == []


@pytest.fixture(scope="module")
def settings_of_threads():
    before = gatherum.get_num_threads()
    yield
    gatherum.set_num_threads(before)


@pytest.mark.parametrize("reduction", ["add", "mean", "max"])
@pytest.mark.parametrize("dtype", ["f4", "f2", "f8", "i2"])
@pytest.mark.parametrize("pattern", ["uniform", "one hot", "Zipf", "sorted"])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_number_of_threads_gives_the_bits_of_the_three_calls(
    settings_of_threads, reduction, dtype, pattern, weighted
):
    rng = np.random.default_rng(3)
    nodes, edges, size = 300, 40_000, 500
    data = (10 * rng.standard_normal((nodes, 30))).astype(dtype)
    sources = rng.integers(0, nodes, edges)
    targets = {
        "uniform": rng.integers(0, size, edges),
        "one hot": np.full(edges, size // 2),
        "Zipf": rng.zipf(1.3, edges) % size,
        "sorted": np.sort(rng.integers(0, size, edges)),
    }[pattern]
    weights = (3 * rng.standard_normal(edges)).astype(dtype) if weighted else None
    messages = gatherum.gather(data, sources)
    if weighted:
        messages = messages * weights[:, None]
    start = np.zeros((size, 30), dtype)
    expected = gatherum.scatter_slices(
        start, targets, messages, reduction=reduction, include_self=False
    )
    for threads in THREADS:
        gatherum.set_num_threads(threads)
        result = gatherum.aggregate(data, sources, targets, size, reduction, weights)
        assert same_bits(expected, result)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("width", [8, 16, 17, 64, 100, 300])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.usefixtures("settings_of_threads")
def test_sums_in_registers_and_in_memory(dtype, width, weighted):
    rng = np.random.default_rng(width)
    data = _values(rng, (9, width), np.dtype(dtype), special=True)
    sources, targets = rng.integers(0, 9, 30), rng.zipf(1.5, 30) % 12
    weights = _values(rng, (30,), np.dtype(dtype), special=True) if weighted else None
    for reduction in ("add", "mean"):
        args = data, sources, targets, 12, reduction, weights
        assert same_bits(reference.aggregate(*args), gatherum.aggregate(*args))
        if not weighted:  # with the old values, as the prepared scatter folds
            old = _values(rng, (12, width), np.dtype(dtype), special=True)
            updates = data[sources]
            add = gatherum.prepare("scatter_slices", old, targets, reduction=reduction)
            expected = reference.scatter_slices(old, targets, updates, reduction=reduction)
            for threads in (1, 2):
                gatherum.set_num_threads(threads)
                assert same_bits(expected, add(old, updates))


def test_indices_of_every_width_and_order_hold_anything():
    data = np.arange(12.0).reshape(4, 3)
    rng = np.random.default_rng(5)
    for dtype in INDEX_DTYPES:
        info = np.iinfo(dtype)
        wild = rng.integers(info.min, info.max, 300, dtype.newbyteorder("="), endpoint=True)
        wild = wild.astype(dtype)
        for mode in ("clip", "wrap", "drop"):
            args = data, wild, wild[::-1], 5, "add"
            expected = reference.aggregate(*args, mode=mode)
            assert same_bits(expected, gatherum.aggregate(*args, mode=mode))


ERRORS = {
    "size": ((ROWS, [0], [0], 1.5, "add"), {}, TypeError, "`size` must be an integer, got 1.5"),
    "below 0": ((ROWS, [0], [0], -1, "add"), {}, ValueError, "`size` must be at least 0, got -1"),
    "none": (
        (ROWS, [0], [0], 1, "none"),
        {},
        ValueError,
        "`reduction` must be one of 'add', 'mul', 'max', 'min', 'mean', 'fsum', 'fmean', "
        "got 'none'",
    ),
    "sources": (
        (ROWS, [0.5], [0], 1, "add"),
        {},
        TypeError,
        "`gather_indices` must have an integer dtype, got float64; write "
        "gather_indices.astype(np.int64)",
    ),
    "targets": (
        (ROWS, [0], [[True]], 1, "add"),
        {},
        TypeError,
        "`scatter_indices` must have an integer dtype, got bool; write "
        "scatter_indices.astype(np.int64)",
    ),
    "dtype": (
        (ROWS.astype("M8[s]"), [0], [0], 1, "add"),
        {},
        TypeError,
        "`reduction` 'add' is not defined for dtype datetime64[s]",
    ),
    "weights": (
        (ROWS, [0], [0], 1, "add", np.ones(1, "f4")),
        {},
        TypeError,
        "`weights` must have the dtype of `data`, float64, got float32; write "
        "weights.astype(data.dtype)",
    ),
    "0-d": (
        (np.array(1.0), [0], [0], 1, "add"),
        {},
        ValueError,
        "`data` must have at least 1 dimension, got 0",
    ),
    "shapes": (
        (ROWS, [0, 1], [0], 1, "add"),
        {},
        ValueError,
        "`scatter_indices` must have shape (2,), got (1,)",
    ),
    "shape of weights": (
        (ROWS, [0, 1], [0, 0], 1, "add", [1, 2, 3]),
        {},
        ValueError,
        "`weights` must have shape (2,), got (3,)",
    ),
    "shape of out": (
        (ROWS, [0], [0], 1, "add"),
        {"out": np.zeros((2, 2))},
        ValueError,
        "`out` must have shape (1, 2), got (2, 2)",
    ),
    "shape of weights within a row": (
        (ROWS, [0, 1], [0, 0], 1, "add", np.ones((2, 3))),
        {},
        ValueError,
        "`weights` must have shape (2, 2), got (2, 3)",
    ),
    "weights of too many dimensions": (
        (ROWS, [0, 1], [0, 0], 1, "add", np.ones((2, 2, 1))),
        {},
        ValueError,
        "`weights` must have shape (2, 2), got (2, 2, 1)",
    ),
    "axis": (
        (ROWS, [0], [0], 1, "add"),
        {"axis": 2},
        ValueError,
        "`axis` must be in [-2, 2), got 2",
    ),
    "an axis between two": (
        (ROWS, [0], [0], 1, "add"),
        {"axis": 0.5},
        TypeError,
        "`axis` must be an integer, got 0.5",
    ),
    "fill value": (
        (ROWS.astype(int), [0], [0], 1, "add"),
        {"fill_value": np.nan},
        ValueError,
        "`fill_value` must be an integer where `data` is int64, got nan",
    ),
    "source": (
        (ROWS, [0, 3], [5, 0], 1, "add"),
        {},
        IndexError,
        "index 3 is out of bounds for axis 0 of size 3 (gather_indices[1])",
    ),
    "target": (
        (ROWS, [[0, 2]], [[0, -2]], 1, "add"),
        {},
        IndexError,
        "index -2 is out of bounds for axis 0 of size 1 (scatter_indices[0, 1])",
    ),
    "nothing to clip to": (
        (ROWS, [0], [0], 0, "add"),
        {"mode": "clip"},
        IndexError,
        "index 0 cannot be clipped into axis 0, which has size 0 (scatter_indices[0])",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    args, kwargs, error_type, sentence = ERRORS[name]
    with pytest.raises(error_type) as caught:
        gatherum.aggregate(*args, **kwargs)
    assert str(caught.value) == f"aggregate: {sentence}"
    if "out" not in kwargs:
        with pytest.raises(error_type):
            reference.aggregate(*args, **kwargs)


@pytest.mark.parametrize("operand", ["data", "gather_indices", "scatter_indices", "weights"])
def test_out_shares_no_memory_with_an_input(operand):
    place = np.zeros((3, 2), np.int64)
    args = {"data": place.copy(), "gather_indices": [0], "scatter_indices": [0], "weights": [1]}
    args[operand] = place if operand == "data" else place.reshape(-1)[:1]
    with pytest.raises(ValueError, match="share memory") as caught:
        gatherum.aggregate(**args, size=3, reduction="add", out=place)
    assert str(caught.value) == f"aggregate: `out` must not share memory with `{operand}`"


def test_a_read_only_out():
    out = np.zeros((1, 2))
    out.flags.writeable = False
    with pytest.raises(ValueError, match="aggregate: `out` must be writable"):
        gatherum.aggregate(ROWS, [0], [0], 1, "add", out=out)


def test_a_row_without_bytes_still_has_its_indices_checked():
    empty = np.zeros((3, 0))
    assert gatherum.aggregate(empty, [0], [1], 2, "add").shape == (2, 0)
    with pytest.raises(IndexError):
        gatherum.aggregate(empty, [3], [1], 2, "add")
