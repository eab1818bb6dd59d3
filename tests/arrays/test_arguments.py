"""Values of attributes, lists as operands, and Python numbers."""

from inspect import signature

import numpy as np
import pytest

import gatherum
from gatherum import _core, reference
from gatherum._arguments import conversion
from gatherum._model import operators
from gatherum._model.call import Attributes

ZEROS_2X3 = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize("indices", [[0], np.array([0])], ids=["list", "array"])
def test_attributes_are_checked_for_any_operands(indices):
    with pytest.raises(ValueError, match="`mode`") as caught:
        gatherum.gather(ZEROS_2X3, indices, mode="ignore")
    assert str(caught.value) == (
        "gather: `mode` must be one of 'raise', 'clip', 'wrap', 'fill', 'drop', got 'ignore'"
    )
    with pytest.raises(ValueError, match="`axis`") as caught:
        gatherum.gather(ZEROS_2X3, indices, 10**30)
    assert str(caught.value) == f"gather: `axis` must be in [-2, 2), got {10**30}"
    with pytest.raises(TypeError, match="`axis`") as caught:
        gatherum.gather(ZEROS_2X3, indices, None)
    assert str(caught.value) == "gather: `axis` must be an integer, got None"


def test_python_has_the_arguments_of_a_call_in_the_order_of_the_core():
    core_order = list(signature(_core.dispatch_call).parameters)
    assert list(signature(conversion.normalize).parameters) == core_order
    assert list(Attributes._fields[1:6]) == core_order[4:9]
    assert Attributes("gather").positional == Attributes("gather")[1:6]


@pytest.mark.parametrize("axis", [True, np.int8(1), np.uint64(1), np.array(1), -1])
def test_whatever_is_an_integer_is_an_axis(axis):
    data = np.arange(6).reshape(2, 3)
    assert gatherum.gather(data, np.array([2]), axis).tolist() == [[2], [5]]


def test_words_are_equal_not_identical():
    mode = np.str_("".join(["cl", "ip"]))
    assert gatherum.gather(np.arange(3), np.array([7]), mode=mode).tolist() == [2]
    assert gatherum.gather(np.arange(3), np.array([7]), mode=str(mode)).tolist() == [2]


@pytest.mark.parametrize("module", [gatherum, reference], ids=["functions", "oracle"])
def test_only_booleans_are_booleans(module):
    data, at = np.arange(3), np.array([-1])
    for false in (False, np.bool_(False)):
        with pytest.raises(IndexError, match=r"^gather: index -1 is out of bounds"):
            module.gather(data, at, negative=false)
        replaced = {"reduction": "add", "include_self": false}
        assert module.scatter_nd(data, at[:, None], 7, **replaced).tolist() == [0, 1, 7]
    for wrong in (0, 1, 0.0, "", "no", None, np.array(False), np.int8(1), []):
        for indices in (at, at.tolist()):
            with pytest.raises(TypeError, match=r"^gather: `negative` must be True or False"):
                module.gather(data, indices, negative=wrong)
        for op in operators.SCATTERS:
            call = [data, at[:, None] if op == "scatter_nd" else at, 7]
            with pytest.raises(TypeError, match=f"^{op}: `include_self` must be True or False"):
                getattr(module, op)(*call, include_self=wrong)


@pytest.mark.parametrize("module", [gatherum, reference], ids=["functions", "oracle"])
@pytest.mark.parametrize("op", operators.SCATTERS)
def test_a_reduction_is_named(module, op):
    """A fifth argument was a reduction for one scatter and a number of dimensions for the other."""
    function = getattr(module, op)
    with pytest.raises(TypeError, match="positional"):
        function(np.zeros(3), [0], 1.0, 0, "add")
    row = operators.OPERATORS[op]
    indices, updates = [[1], [0]], [1.0, 2.0] if row.takes_tuples else [[1.0], [2.0]]
    expected = [[0, 1], [2, 0]]
    if not row.addressing.shares_front:
        indices, updates = [1, 0], [[1.0, 9.0], [2.0, 8.0]]
        expected = [[9, 1], [8, 2]]
    assert function(np.zeros((2, 2)), indices, updates, 1).tolist() == expected


def test_lists_that_hold_lists_that_hold_themselves():
    endless = [1]
    endless += [endless, np.array([1])]
    with pytest.raises(TypeError, match="a list that holds arrays"):
        gatherum.gather(ZEROS_2X3, endless)
    doubled = [np.ma.array([1])]
    for _ in range(60):  # 2^60 of them if each occurrence were visited
        doubled = [doubled, doubled]
    with pytest.raises(TypeError, match="`data` must not be a masked array"):
        gatherum.gather(doubled, [0])


def test_lists_of_numbers_of_numpy_are_indices():
    indices = [[np.int8(1)], (np.uint8(0),)]
    assert gatherum.gather_nd(np.arange(3), indices).tolist() == [1, 0]


FINITE = [
    *("f2", 65519.0, True), *("f2", 65520.0, False), *("f2", [[1.0, -7e4]], False),
    *("f4", 3.4028235e38, True), *("f4", 1e39, False), *("f4", 10**39, False),
    *("f4", 10**400, False), *("f4", [float("inf"), 0.5], True),
    *("f4", [float("inf"), 1e39], False), *("f4", float("nan"), True),
    *("f8", 1e308, True), *("f8", 10**309, False),
    *("c8", 1e39j, False), *("c8", complex(float("inf"), 1e39), False),
    *("c8", complex(float("nan"), 1), True), *("c16", 1e308j, True),
    *("bfloat16", 3.4e38, False), *("bfloat16", 3.38e38, True),
    *("float8_e5m2", 1e5, False), *("float8_e4m3fn", 500.0, False), *("float8_e4m3fn", 448, True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "value", "stays"), [FINITE[i : i + 3] for i in range(0, len(FINITE), 3)], ids=repr
)
@pytest.mark.parametrize("module", [gatherum, reference], ids=["gatherum", "reference"])
def test_finite_values_stay_finite(module, dtype, value, stays):
    if not dtype[1].isdigit():
        dtype = getattr(pytest.importorskip("ml_dtypes", reason="install ml_dtypes"), dtype)
    data = np.zeros((1, 2), dtype)
    filled = {"mode": "fill", "fill_value": value}
    if stays:
        result = module.scatter_nd(data, [[0]], value)
        assert (np.isfinite(result.astype("c16")) == np.isfinite(value)).all()
        return
    with pytest.raises(ValueError, match="`updates` must stay finite in "):
        module.scatter_nd(data, [[0]], value)
    if not isinstance(value, list):
        with pytest.raises(ValueError, match="`fill_value` must "):
            module.gather(data, [7], **filled)
