"""The order in which the faults of a call are reported."""

import numpy as np
import pytest

import gatherum
from gatherum._model import operators
from strategies import OPERATORS

ZEROS_2X3 = np.zeros((2, 3), np.float32)
FIRST_ROW = np.zeros((1, 1), np.int64)
HALVES, WHOLES = np.full((2, 1), 0.5), np.zeros((2, 1), int)


@pytest.mark.parametrize(
    ("data", "indices", "error"),
    [
        (np.zeros(()), HALVES, ValueError),  # indices bound `batch_dims`
        (np.zeros(3), HALVES, ValueError),
        (np.zeros(3), HALVES[0, 0], TypeError),  # without dimensions no value is valid
        (np.zeros(3, object), WHOLES, ValueError),
        (np.zeros(3, object), WHOLES[0, 0], TypeError),
    ],
)
def test_batch_dims_are_checked_against_the_indices(data, indices, error):
    with pytest.raises(error, match="batch_dims" if error is ValueError else "dtype"):
        gatherum.gather_nd(data, indices, batch_dims=5)


@pytest.mark.parametrize(
    ("data", "indices", "error"),
    [
        (np.zeros(3), HALVES, ValueError),
        (np.zeros(3), HALVES[0, 0], ValueError),
        (np.zeros(()), HALVES, TypeError),
    ],
)
def test_an_axis_is_checked_against_the_data(data, indices, error):
    with pytest.raises(error, match="axis" if error is ValueError else "dtype"):
        gatherum.gather(data, indices, axis=5)


def faulty(op):
    """Return the faults of a call in the order of the checks, each as an update of arguments."""
    row = operators.OPERATORS[op]
    each, nd = row.addressing.shares_back, row.takes_tuples
    right = {"data": np.zeros((2, 3), np.float32), "indices": np.zeros((2, 1), np.int64)}
    if not (each or nd):
        right["indices"] = np.zeros(2, np.int64)
    moved = (2, 1) if each else (2, 3)
    if row.scatters:
        right["updates"] = np.zeros(moved, np.float32)
    right["out"] = np.zeros((2, 3) if row.scatters else moved, np.float32)
    read_only = right["out"].copy()
    read_only.flags.writeable = False
    steps = [
        (IndexError, "index 9", {"indices": right["indices"] + 9}),
        (ValueError, "`out` must be writable", {"out": read_only}),
        (ValueError, "`out` must have shape", {"out": np.zeros(7, np.float32)}),
    ]
    many = np.full((*(1,) * 63, 4), 9)
    wrong = "at most 64 dimensions, got 65"
    if each:
        wrong = "`indices` must have as many dimensions"
    elif nd:
        wrong = "the last dimension of `indices` must be at most 2"
    steps.append((ValueError, wrong, {"indices": many}))
    steps.append((TypeError, "`indices` must have an integer", {"indices": many * 0.5}))
    steps.append((ValueError, f"`{row.attribute}` must be in", {row.attribute: 70}))
    return right, steps


@pytest.mark.parametrize("op", OPERATORS)
def test_the_order_of_checks(op):
    arguments, steps = faulty(op)
    getattr(gatherum, op)(**arguments)
    for error_type, words, fault in steps:
        arguments |= fault
        with pytest.raises(error_type) as caught:
            getattr(gatherum, op)(**arguments)
        assert str(caught.value).startswith(f"{op}: ")
        assert words in str(caught.value)


@pytest.mark.parametrize("op", OPERATORS)
def test_every_attribute_comes_before_the_operands(op):
    arguments, steps = faulty(op)
    for _, _, fault in steps[:-1]:
        arguments |= fault
    for name in ("mode", "reduction") if op.startswith("scatter") else ("mode",):
        with pytest.raises(ValueError, match=f"^{op}: `{name}` must be one of .*, got 'no'$"):
            getattr(gatherum, op)(**arguments | {name: "no"})


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("op", OPERATORS)
def test_dtypes_come_before_dimensions_that_are_missing(op, plain):
    few = "indices" if operators.OPERATORS[op].takes_tuples else "data"
    wrong = {"data": np.float32(1), "indices": np.float64(0)}
    if op.startswith("scatter"):
        wrong["updates"] = np.float64(1)
    name = "batch_dims" if op.endswith("_nd") else "axis"
    attributes = {name: 10**30}
    convert = (lambda value: value.item()) if plain else np.array
    arguments = {key: convert(value) for key, value in wrong.items()}
    for call in (getattr(gatherum, op), lambda **a: gatherum.plan(op, *a.values())):
        arguments["indices"] = convert(np.float64(0))
        with pytest.raises(TypeError, match=r"`indices` must have an integer dtype, got float64;"):
            call(**arguments)
        arguments["indices"] = convert(np.int64(0))
        if op.startswith("scatter"):
            words = "be a real number where" if plain else "have the dtype of"
            arguments["updates"] = convert(np.complex128(1))
            error_type = ValueError if plain else TypeError
            with pytest.raises(error_type, match=f"`updates` must {words} `data`"):
                call(**arguments)
            arguments["updates"] = convert(np.float32(1)) if plain else np.float32(1)
        with pytest.raises(ValueError, match=f"`{few}` must have at least 1 dimension, got 0$"):
            call(**arguments)
    with pytest.raises(ValueError, match=f"`{few}` must have at least 1 dimension, got 0$"):
        getattr(gatherum, op)(**arguments, **attributes)


@pytest.mark.parametrize("op", ["scatter_elements", "scatter_nd"])
def test_dtypes_come_before_the_values_of_updates(op):
    data, updates = np.zeros((2, 3), np.int8), [[300]]
    indices = [[0.5]]
    for call in (getattr(gatherum, op), lambda *a: gatherum.plan(op, *a)):
        with pytest.raises(TypeError, match="`indices` must have an integer dtype"):
            call(data, indices, updates)
        with pytest.raises(TypeError, match="`data` must have a dtype without objects"):
            call(data.astype(object), indices, updates)
        with pytest.raises(ValueError, match="`updates` must convert exactly"):
            call(data, [[0]], updates)


def test_a_plan_and_a_report_check_in_the_same_order():
    masked = np.ma.zeros((1, 3), np.float32)
    with pytest.raises(ValueError, match="`mode` must be one of"):
        gatherum.plan("gather", masked, [0], mode="ignore")
    with pytest.raises(ValueError, match="`axis` must be in"):
        gatherum.plan("scatter_elements", ZEROS_2X3, FIRST_ROW, 1j, axis=2)
    with pytest.raises(ValueError, match="`indices` must have as many dimensions"):
        gatherum.plan("gather_elements", ZEROS_2X3, [0], out=masked)
    with pytest.raises(TypeError, match="`indices` must have an integer dtype"):
        gatherum.index_report("gather", (), [0.5])
    with pytest.raises(ValueError, match="`axis` must be in"):
        gatherum.index_report("gather", (3,), [0.5], axis=1)
    with pytest.raises(ValueError, match="`data` must have at least 1 dimension"):
        gatherum.index_report("gather", (), [0])
