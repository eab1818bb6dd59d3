"""`index_report`, compared with a walk over every entry in plain Python."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import gatherum
from gatherum import IndexReport, index_report
from strategies import OPERATORS, calls

pytestmark = pytest.mark.slow


def brute(op, shape, indices, *, axis=0, batch_dims=0, mode="raise", negative=True):
    """Apply the definition: the destination of each entry, and the entries before it."""
    if not isinstance(indices, np.ndarray):
        indices = np.array(indices, np.int64 if np.size(indices) == 0 else None)
    nd = op.endswith("_nd")
    entries = list(np.ndindex(indices.shape[:-1] if nd else indices.shape))
    seen, invalid, duplicates = set(), [], []
    for entry in entries:
        if nd:
            place = [*entry[:batch_dims], *(int(v) for v in indices[entry])]
            moving = range(batch_dims, len(place))
        elif op in ("gather", "scatter_slices"):
            place, moving = [int(indices[entry])], [0]
        else:
            place, moving = list(entry), [axis % len(shape)]
            place[axis] = int(indices[entry])
        shape_of_place = [shape[axis]] if op in ("gather", "scatter_slices") else shape
        right, reachable = True, True
        for d in moving:
            place[d], good = checked(place[d], shape_of_place[d], mode, negative, indices.dtype)
            right &= good
            reachable &= good or (mode in ("clip", "wrap") and shape_of_place[d] > 0)
        if not right:
            invalid.append(entry)
        if reachable:
            duplicates += [entry] if tuple(place) in seen else []
            seen.add(tuple(place))
    first = [positions[0] if positions else None for positions in (invalid, duplicates)]
    return IndexReport(len(entries), len(invalid), len(duplicates), *first)


def checked(value, size, mode, negative, dtype):
    resolved = value + size if negative and dtype.kind == "i" and value < 0 else value
    if 0 <= resolved < size:
        return resolved, True
    if mode == "clip" and size:
        return min(max(resolved if negative else value, 0), size - 1), False
    return value % size if mode == "wrap" and size else -1, False


@pytest.mark.parametrize("op", OPERATORS)
@given(data=st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_report_is_that_of_the_definition(op, data):
    call = data.draw(calls([op]))
    names = ("axis", "batch_dims", "mode", "negative")
    attributes = {name: call.kwargs[name] for name in names if name in call.kwargs}
    shape = np.shape(call.args[0])
    report = index_report(op, shape, call.args[1], **attributes)
    assert report == brute(op, shape, call.args[1], **attributes)


@pytest.mark.parametrize(
    ("op", "shape", "indices", "attributes", "sentence"),
    [
        (
            "gather",
            (3, 4),
            [0, 2, 0, 7],
            {},
            "4 entries, 1 invalid (first at [3]), 1 duplicate (first at [2])",
        ),
        ("gather", (3, 4), -1, {"axis": 1}, "1 entries, 0 invalid, 0 duplicate"),
        (
            "gather_nd",
            (1, 1),
            [[2**63 - 1, 2**63 - 1]],  # their sum is not an int64
            {},
            "1 entries, 1 invalid (first at [0]), 0 duplicate",
        ),
        (
            "gather",
            (3,),
            [-1, 2],
            {"negative": False},
            "2 entries, 1 invalid (first at [0]), 0 duplicate",
        ),
        (
            "gather",
            (3,),
            [2, 9],
            {"mode": "clip"},
            "2 entries, 1 invalid (first at [1]), 1 duplicate (first at [1])",
        ),
        (
            "gather",
            (0,),
            [2, 9],
            {"mode": "wrap"},
            "2 entries, 2 invalid (first at [0]), 0 duplicate",
        ),
        (
            "scatter_elements",
            (2, 2),
            [[0, 0], [0, 1]],
            {},
            "4 entries, 0 invalid, 1 duplicate (first at [1, 0])",
        ),
        (
            "scatter_nd",
            (2, 2),
            [[[0, 1], [2, 1]], [[1, 1], [0, -1]]],
            {"mode": "drop"},
            "4 entries, 1 invalid (first at [0, 1]), 1 duplicate (first at [1, 1])",
        ),
        ("gather_nd", (2, 2), [[1], [1]], {"batch_dims": 1}, "2 entries, 0 invalid, 0 duplicate"),
        (
            "gather_nd",
            (2, 2),
            np.zeros((3, 0), int),
            {},
            "3 entries, 0 invalid, 2 duplicate (first at [1])",
        ),
        ("gather", (2**40, 2**40), [2**40 - 1], {}, "1 entries, 0 invalid, 0 duplicate"),
    ],
)
def test_reports_in_words(op, shape, indices, attributes, sentence):
    assert str(index_report(op, shape, indices, **attributes)) == sentence


@pytest.mark.parametrize(
    ("args", "attributes", "error_type", "sentence"),
    [
        (
            ("take", (3,), [0]),
            {},
            ValueError,
            "index_report: `op` must be one of 'gather', 'gather_elements', 'gather_nd', "
            "'scatter_slices', 'scatter_elements', 'scatter_nd', got 'take'",
        ),
        (
            ("gather", (3,), [0]),
            {"batch_dims": 0},
            TypeError,
            "gather: unknown attribute 'batch_dims'; it takes 'axis', 'mode', 'negative', "
            "'fill_value'",
        ),
        (
            ("scatter_nd", (3,), [[0]]),
            {"fill_value": 0},
            TypeError,
            "scatter_nd: unknown attribute 'fill_value'; it takes 'batch_dims', 'mode', 'negative'",
        ),
        (
            ("gather", 3, [0]),
            {},
            ValueError,
            "gather: `data` must have at least 1 dimension, got 0",
        ),
        (
            ("gather", np.ma.zeros(3), [0]),
            {},
            TypeError,
            "gather: `data` must not be a masked array: its mask would be lost",
        ),
        (
            ("gather", (3, None), [0]),
            {},
            TypeError,
            "gather: `data` must be a tuple of integers, got (3, None)",
        ),
        (
            ("gather", (3, -1), [0]),
            {},
            ValueError,
            "gather: `data` must have sizes of at least 0, got (3, -1)",
        ),
        (
            ("gather_nd", (2**40, 2**40), [[0, 0]]),
            {},
            ValueError,
            "gather_nd: `data`, shape (1099511627776, 1099511627776), has more elements than can "
            "be addressed",
        ),
        (
            ("gather", (3,), [0.5]),
            {},
            TypeError,
            "gather: `indices` must have an integer dtype, got float64; write "
            "indices.astype(np.int64)",
        ),
        (
            ("scatter_nd", (3,), [[0, 0]]),
            {},
            ValueError,
            "scatter_nd: the last dimension of `indices` must be at most 1, the dimensions of "
            "`data` that are not batch dimensions, got 2",
        ),
    ],
)
def test_invalid_calls_raise(args, attributes, error_type, sentence):
    with pytest.raises(error_type) as caught:
        gatherum.index_report(*args, **attributes)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    "data",
    [(2, 3), ((2, 3), "f4"), ((2, 3), np.float32, (12, 4)), np.zeros((2, 3)), [[0] * 3] * 2],
    ids=["shape", "pair", "strides", "array", "lists"],
)
def test_data_is_an_array_or_its_description(data):
    report = gatherum.index_report("gather", data, [0, 2, 0], fill_value=1)
    assert (report.invalid, report.duplicates) == (1, 1)
