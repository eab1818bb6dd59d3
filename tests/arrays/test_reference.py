"""The oracle, compared with answers worked out by hand and with NumPy's own indexing."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from canaries import byte_rows
from cases import CASES, Case
from gatherum import reference
from gatherum._model import operators
from gatherum._model.reductions import FOLDS, REDUCTIONS
from strategies import (
    INTEGERS,
    OPERATORS,
    PADDED,
    REDUCTIONS_OF,
    SCATTERS,
    Call,
    calls,
    outcome,
    same_bits,
)

Array = NDArray[Any]
UNPADDED = [dtype for dtype in REDUCTIONS_OF["none"] if dtype != PADDED]
FEW = 32  # dimensions: with more, NumPy crashes in `ufunc.at` and rejects fancy indices


# --- The shared cases


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    result = case.run(reference)
    assert same_bits(result, case.expected), (result, case.expected)


def test_the_cases_cover_all_options_of_the_operators() -> None:
    assert len({str(case) for case in CASES}) == len(CASES)
    assert min(Counter(case.op for case in CASES)[op] for op in OPERATORS) >= 8
    seen = {
        (key, value) for c in CASES for key, value in c.attributes.items() if key != "fill_value"
    }
    reductions = {("reduction", name) for name in FOLDS}
    modes = {("mode", name) for name in ("clip", "wrap", "fill", "drop")}
    others = {("include_self", False), ("negative", False), ("batch_dims", 1), ("axis", -1)}
    assert reductions | modes | others <= seen


# --- NumPy's own indexing, on valid indices


@given(calls(ops=["gather"], invalid=0.0, data_dtypes=UNPADDED, most_dimensions=FEW))
def test_gather_is_take(call: Call) -> None:
    data, indices, axis = call.args[0], np.asarray(call.args[1]), call.kwargs.get("axis", 0)
    assume(data.shape[axis] > 0 and indices.size > 0)
    assert same_bits(call.run(reference), taken(data, indices, axis))


def taken(data: Array, indices: Any, axis: int) -> Array:
    """Take with at least one index dimension: NumPy's scalars lose the padding of longdouble."""
    axis %= data.ndim
    rows = np.take(data, np.asarray(indices).ravel().astype(np.int64), axis)
    return rows.reshape(data.shape[:axis] + np.shape(indices) + data.shape[axis + 1 :])


@given(
    calls(ops=["gather"], invalid=0.5, data_dtypes=UNPADDED, most_dimensions=FEW),
    st.sampled_from([("clip", False), ("wrap", True), ("wrap", False)]),
)
def test_gather_outside_is_take_inside(call: Call, rule: tuple[str, bool]) -> None:
    mode, negative = rule
    data, indices, axis = call.args[0], np.asarray(call.args[1]), call.kwargs.get("axis", 0)
    size = data.shape[axis]
    assume(size > 0)
    exact = np.asarray(indices.astype(object))  # Python integers, so 2^63 and more are safe
    inside = exact % size if mode == "wrap" else np.minimum(np.maximum(exact, 0), size - 1)
    result = reference.gather(data, indices, axis, mode=mode, negative=negative)
    assert same_bits(result, taken(data, inside, axis))


@given(calls(ops=["gather_elements"], invalid=0.0, data_dtypes=UNPADDED, most_dimensions=FEW))
def test_gather_elements_is_take_along_axis(call: Call) -> None:
    data, indices = call.args[0], np.asarray(call.args[1])
    axis = call.kwargs.get("axis", 0) % data.ndim
    assume(data.shape[axis] > 0)
    beside = [slice(n if d != axis else None) for d, n in enumerate(indices.shape)]
    expected = np.take_along_axis(data[tuple(beside)], indices.astype(np.int64), axis)
    assert same_bits(call.run(reference), expected)


def plain(call: Call, **attributes: Any) -> Call:
    """Return the attributes that select positions; NumPy checks every index."""
    where = {key: call.kwargs[key] for key in ("axis", "batch_dims") if key in call.kwargs}
    return Call(call.op, call.args, where | attributes)


def addresses(call: Call) -> tuple[Any, ...]:
    """Return NumPy's fancy index for the elements or slices that a call addresses.

    It is in C order, because NumPy assigns in the memory order of the indices.
    """
    data, indices = call.args[0], np.array(call.args[1], np.int64, order="C")
    row = operators.OPERATORS[call.op]
    axis = call.kwargs.get(row.attribute, 0)
    if row.takes_tuples:
        components = [indices[..., c].copy(order="C") for c in range(indices.shape[-1])]
        return (*(np.indices(indices.shape[:-1])[:axis]), *components)
    axis %= data.ndim
    if not row.addressing.shares_front:
        return (*[slice(None)] * axis, indices)
    places = np.indices(indices.shape, sparse=True)
    back = places[axis + 1 :] if row.addressing.shares_back else ()
    return (*places[:axis], indices, *back)


@given(calls(ops=["gather_nd"], invalid=0.0, data_dtypes=UNPADDED, most_dimensions=FEW))
def test_gather_nd_is_fancy_indexing(call: Call) -> None:
    call = plain(call)
    result = outcome(reference, call)
    assume(not isinstance(result, Exception))
    where = addresses(call)
    lead = np.asarray(call.args[1]).shape[:-1]
    data = call.args[0]
    expected = data[(*where, ...)] if where else np.broadcast_to(data, lead + data.shape)
    assert same_bits(result, expected)


@given(calls(ops=SCATTERS, invalid=0.0, data_dtypes=UNPADDED, most_dimensions=FEW))
def test_scatter_is_fancy_assignment(call: Call) -> None:
    call = plain(call)
    result, where = outcome(reference, call), addresses(call)
    assume(not isinstance(result, Exception) and where != ())
    expected = call.args[0].copy()
    expected[where] = call.args[2]  # the last duplicate also wins in NumPy
    assert same_bits(result, expected)


@pytest.mark.parametrize(
    ("reduction", "ufunc"),
    [("add", np.add), ("mul", np.multiply), ("max", np.maximum), ("min", np.minimum)],
)
@given(call=calls(ops=SCATTERS, invalid=0.0, data_dtypes=INTEGERS, most_dimensions=FEW))
def test_integer_reductions_are_ufunc_at(call: Call, reduction: str, ufunc: np.ufunc) -> None:
    call = plain(call, reduction=reduction)
    result, where = outcome(reference, call), addresses(call)
    assume(not isinstance(result, Exception) and where != ())
    expected = call.args[0].copy()
    updates = np.empty_like(expected[where])  # broadcast in full: `at` misreads some views
    updates[...] = call.args[2]
    ufunc.at(expected, where, updates)
    assert same_bits(result, expected)


# --- Bits of reductions


def _dtype(name: str) -> Any:
    if name == "bfloat16":
        return np.dtype(pytest.importorskip("ml_dtypes", reason="install ml_dtypes").bfloat16)
    return np.dtype(name)


def fold(
    dtype: str, reduction: str, old: Any, updates: list[Any], include_self: bool = True
) -> str:
    """Reduce items onto one element and return its bytes, most significant first.

    Strings are bits in hexadecimal; numbers are values of the dtype.
    """
    resolved = _dtype(dtype)

    def item(value: Any) -> bytes:
        if isinstance(value, str):
            return bytes.fromhex(value)[::-1]
        return np.array(value).astype(resolved).tobytes()

    items = np.frombuffer(b"".join(map(item, [old, *updates])), resolved)
    zeros = np.zeros((len(updates), 1), np.int8)
    result = reference.scatter_nd(
        items[:1], zeros, items[1:], reduction=reduction, include_self=include_self
    )
    return result.tobytes()[::-1].hex()


F32_NAN, F32_MINUS_NAN, F32_PAYLOAD, F32_SIGNALING = "7fc00000", "ffc00000", "7fc00123", "7f800001"
INF = float("inf")


@pytest.mark.parametrize("reduction", FOLDS)
@pytest.mark.parametrize("nan", [F32_NAN, F32_MINUS_NAN, F32_PAYLOAD, F32_SIGNALING])
def test_a_nan_from_an_operation_is_canonical(reduction: str, nan: str) -> None:
    assert fold("f4", reduction, 1, [nan]) == F32_NAN
    assert fold("f4", reduction, nan, [1]) == F32_NAN
    assert fold("f4", reduction, 9, [1, nan], include_self=False) == F32_NAN
    assert fold("f4", reduction, 9, [nan, 1], include_self=False) == F32_NAN


@pytest.mark.parametrize("nan", [F32_MINUS_NAN, F32_PAYLOAD, F32_SIGNALING])
def test_a_nan_without_an_operation_keeps_its_bits(nan: str) -> None:
    for reduction in [name for name in FOLDS if name not in ("mean", "fsum", "fmean")]:
        assert fold("f4", reduction, 1, [nan], include_self=False) == nan
    assert fold("f4", "none", 1, [2, nan]) == nan
    assert fold("f4", "mean", 1, [nan], include_self=False) == F32_NAN  # divided by 1
    assert fold("f4", "fsum", 1, [nan], include_self=False) == F32_NAN


@pytest.mark.parametrize(
    ("dtype", "nan"),
    [("f2", "7e00"), ("bfloat16", "7fc0"), ("f4", F32_NAN), ("f8", "7ff8000000000000")],
)
def test_each_dtype_has_one_canonical_nan(dtype: str, nan: str) -> None:
    assert fold(dtype, "add", INF, [-INF]) == nan
    assert fold(dtype, "mul", 0, [-INF]) == nan
    assert fold(dtype, "mean", -INF, [INF]) == nan


def test_nan_of_a_complex_number_is_canonical_by_component() -> None:
    one, other = "3f800000", "40000000"  # 1 and 2
    assert fold("c8", "add", F32_PAYLOAD + one, [one + one]) == F32_NAN + other
    assert fold("c8", "mean", one + F32_MINUS_NAN, [one + one]) == one + F32_NAN
    assert fold("c8", "mul", one + F32_MINUS_NAN, [one + one]) == F32_NAN + F32_NAN


PLUS, MINUS = "00000000", "80000000"


@pytest.mark.parametrize(
    ("reduction", "old", "update", "result"),
    [
        ("max", MINUS, PLUS, PLUS),
        ("max", PLUS, MINUS, PLUS),
        ("max", MINUS, MINUS, MINUS),
        ("min", MINUS, PLUS, MINUS),
        ("min", PLUS, MINUS, MINUS),
        ("min", PLUS, PLUS, PLUS),
        ("add", PLUS, MINUS, PLUS),
        ("add", MINUS, MINUS, MINUS),
        ("mul", MINUS, PLUS, MINUS),
        ("mean", MINUS, MINUS, MINUS),
    ],
)
def test_signed_zeros(reduction: str, old: str, update: str, result: str) -> None:
    assert fold("f4", reduction, old, [update]) == result


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_without_the_old_value_minus_zero_stays(reduction: str) -> None:
    assert fold("f4", reduction, 5, [MINUS], include_self=False) == MINUS


@pytest.mark.parametrize(
    ("dtype", "reduction", "old", "updates", "result"),
    [
        ("f2", "add", 2048, [1, 1], "6801"),  # 2050, lost when each step rounds
        ("f2", "add", 65504, [65504, -65504], "7bff"),  # no intermediate overflow
        ("f2", "add", 65504, [65504], "7c00"),  # but a final one
        ("f2", "mul", "0001", [0.5, 2], "0001"),  # the least subnormal survives
        ("f2", "mean", 1, [2, 2], "3eab"),  # 5/3 = 1.6666: 1.aab8 rounds up to 1.aac
        ("f2", "add", 2048, [1], "6800"),  # one rounding, ties to even
        ("bfloat16", "add", 256, [1, 1], "4381"),  # 258
        ("bfloat16", "add", 256, [1], "4380"),  # a tie to even
        ("bfloat16", "mul", 3, [85.5], "4380"),  # 256.5 rounds to 256
        ("f4", "add", 2**24, [1, 1], "4b800000"),  # floats fold in their own type
        ("f8", "add", 2**53, [1, 1], "4340000000000000"),
        ("f4", "add", 1, [2**-24, 2**-24], "3f800000"),  # from the left: not 1 + 2^-23
        ("f4", "add", 2**-24, [2**-24, 1], "3f800001"),
        ("f4", "mul", "00000001", [0.75], "00000001"),  # no flush to zero
        ("f4", "mean", 1, [1, 0], "3f2aaaab"),  # 2/3
    ],
)
def test_rounding(dtype: str, reduction: str, old: Any, updates: list[Any], result: str) -> None:
    assert fold(dtype, reduction, old, updates) == result


def test_complex_products_round_each_operation() -> None:
    # ac = (1 + 2^-12)^2 rounds to 1 + 2^-11, which is bd; a fused multiply-add would give 2^-24.
    data = np.array([complex(1 + 2**-12, 1)], np.complex64)
    factor = np.array([complex(1 + 2**-12, 1 + 2**-11)], np.complex64)
    result = reference.scatter_nd(data, [[0]], factor, reduction="mul")
    assert same_bits(result, np.array([complex(0, 2 + 2**-10)], np.complex64))


@pytest.mark.parametrize(
    ("dtype", "old", "updates", "result"),
    [
        ("i1", -1, [-2], -2),
        ("u1", 255, [255], 255),
        ("i1", 127, [127, 127], 127),
        ("u8", 2**64 - 1, [2**64 - 1], 2**63 - 1),
        ("i8", 2**63 - 1, [1], -(2**62)),
        ("i4", -7, [0, 0], -3),
    ],
)
def test_integer_means_floor_a_sum_of_64_bits(
    dtype: str, old: int, updates: list[int], result: int
) -> None:
    data, more = np.array([old], dtype), np.array(updates, dtype)
    zeros = np.zeros((len(updates), 1), int)
    mean = reference.scatter_nd(data, zeros, more, reduction="mean")
    assert same_bits(mean, np.array([result], dtype))


def test_means_count_the_old_value_only_with_include_self() -> None:
    data = np.array([100, 7], np.int32)
    updates = np.array([1, 2, 4], np.int32)
    zeros = np.zeros((3, 1), int)
    assert reference.scatter_nd(data, zeros, updates, reduction="mean").tolist() == [26, 7]
    alone = reference.scatter_nd(data, zeros, updates, reduction="mean", include_self=False)
    assert alone.tolist() == [2, 7]


def test_integers_wrap() -> None:
    assert fold("i1", "add", 127, [1]) == "80"
    assert fold("i1", "mul", 100, [3]) == "2c"
    assert fold("u8", "mul", 2**63, [2, 1]) == "00" * 8
    assert fold("u1", "max", 200, [100]) == "c8"


@pytest.mark.parametrize(
    ("reduction", "old", "update", "result"),
    [
        ("add", "00", "02", "01"),
        ("max", "02", "00", "01"),
        ("mul", "02", "ff", "01"),
        ("min", "02", "00", "00"),
        ("add", "00", "00", "00"),
        ("mul", "80", "00", "00"),
    ],
)
def test_any_nonzero_byte_is_true(reduction: str, old: str, update: str, result: str) -> None:
    assert fold("?", reduction, old, [update]) == result
    assert fold("?", reduction, "01", [update], include_self=False) == update  # copied
    assert fold("?", reduction, "01", [old, update], include_self=False) == result


# --- Movement


def test_padding_and_payloads_move_from_any_address() -> None:
    buffer = np.arange(1, 101, dtype=np.uint8)
    for data in (
        np.ndarray((4,), PADDED, buffer=buffer, offset=1),
        np.ndarray((4,), PADDED, buffer=buffer, offset=60, strides=(-17,)),
    ):
        rows = byte_rows(data)
        assert byte_rows(reference.gather(data, [3, 0])).tolist() == rows[[3, 0]].tolist()
        scattered = byte_rows(reference.scatter_nd(data, [[1]], data[3:]))
        assert scattered.tolist() == rows[[0, 3, 2, 3]].tolist()


def test_items_of_no_bytes() -> None:
    data = np.zeros(3, [("text", "S0"), ("number", "i4")])["text"]
    assert reference.gather(data, [2, 2]).shape == (2,)
    assert reference.gather(data, [5], mode="fill").dtype.itemsize == 0
    assert reference.scatter_nd(data, [[1]], data[:1]).dtype == data.dtype


def test_results_are_new_plain_writable_and_contiguous() -> None:
    class Kind(np.ndarray):
        pass

    data = np.arange(6.0).reshape(2, 3).T.view(Kind)
    data.flags.writeable = False
    for result in (
        reference.gather(data, [0, 1, 2]),
        reference.gather(data[0], 1),
        reference.scatter_elements(data, np.zeros((0, 2), int), np.zeros((0, 2))),
    ):
        assert type(result) is np.ndarray
        assert result.flags.c_contiguous
        assert result.flags.writeable
        assert not np.shares_memory(result, data)


def test_rank_32_works() -> None:
    data = np.arange(2).reshape((2,) + (1,) * 31)
    assert reference.gather(data, [1, 1, 0]).ravel().tolist() == [1, 1, 0]
    assert reference.gather_nd(data, [[1] + [0] * 31]).tolist() == [1]


# --- Arguments


def test_empty_lists_are_indices() -> None:
    assert reference.gather([1.0, 2.0], []).shape == (0,)
    assert reference.gather_nd([1.0, 2.0], ([], [])).tolist() == [[1.0, 2.0], [1.0, 2.0]]


@pytest.mark.parametrize(
    ("dtype", "updates", "result"),
    [
        ("i1", 3, [3, 3]),
        ("i1", True, [1, 1]),
        ("i1", [np.int64(-128), 127], [-128, 127]),
        ("f4", 1, [1.0, 1.0]),
        ("f4", [np.float64(0.5), 2], [0.5, 2.0]),
        ("c8", (1, 2.5), [1.0, 2.5]),
        ("f8", 2**70, [2.0**70, 2.0**70]),
        ("S2", [b"ab", b""], [b"ab", b""]),
        (">i2", [1, 2], [1, 2]),
    ],
)
def test_python_values_are_weak_updates(dtype: str, updates: Any, result: list[Any]) -> None:
    written = reference.scatter_nd(np.zeros(2, dtype), [[0], [1]], updates)
    assert same_bits(written, np.array(result, dtype))


@pytest.mark.parametrize(
    ("dtype", "fill_value", "result"),
    [
        ("f4", -0.0, -0.0),
        ("f4", np.nan, np.nan),
        ("f4", np.float64(0.5), 0.5),
        ("f4", 0.1, np.float32(0.1)),
        ("f4", 2**24 + 1, 2.0**24),
        ("f4", 2**60, 2.0**60),
        ("f2", True, 1.0),
        ("i4", np.float64(7.0), 7),
        ("i4", np.array(7), 7),
        ("u8", 2**64 - 1, 2**64 - 1),
        ("?", np.int8(1), True),
        ("c8", 0.1, np.float32(0.1)),
        ("c8", 2, 2),
        ("S3", False, b""),
        ("S3", b"abc", b"abc"),
        ("M8[s]", np.datetime64("2001-01-01"), "2001-01-01"),
        ("M8[s]", 0, 0),
    ],
)
def test_exact_fill_values(dtype: str, fill_value: Any, result: Any) -> None:
    for mode in ("fill", "drop"):
        filled = reference.gather(np.ones(1, dtype), [1], mode=mode, fill_value=fill_value)
        assert same_bits(filled, np.array([result], dtype))


@pytest.mark.parametrize(
    ("dtype", "fill_value"),
    [
        ("f4", np.float64(0.1)),
        ("f4", np.int64(2**24 + 1)),
        ("f4", 10**400),
        ("f4", 1e300),
        ("f4", 1j),
        ("f4", [1]),
        ("f4", "1"),
        ("i4", 0.5),
        ("i4", 7.0),
        ("i4", np.nan),
        ("i1", 128),
        ("u1", -1),
        ("?", 1),
        ("?", 2),
        ("S3", b"abcd"),
        ("S3", "abc"),
        ("S3", 1),
        ("M8[s]", 1),
        ("M8[s]", None),
    ],
)
def test_inexact_fill_values(dtype: str, fill_value: Any) -> None:
    data = np.ones(1, dtype)
    with pytest.raises(ValueError, match=r"^gather: `fill_value` must "):
        reference.gather(data, [0], mode="fill", fill_value=fill_value)
    assert same_bits(reference.gather(data, [0], mode="clip", fill_value=fill_value), data)


ZEROS_2X2 = np.zeros((2, 2), np.float32)
FIRST_ROW = np.zeros((1, 1), np.int64)
RAISED: list[tuple[type[Exception], str, tuple[Any, ...], dict[str, Any]]] = [
    (TypeError, "gather", (ZEROS_2X2, [0], 0.0), {}),
    (TypeError, "gather", (ZEROS_2X2, [0], None), {}),
    (TypeError, "gather_nd", (ZEROS_2X2, FIRST_ROW, "0"), {}),
    (TypeError, "gather", (ZEROS_2X2, [0.0]), {}),
    (TypeError, "gather", (ZEROS_2X2, [True]), {}),
    (TypeError, "gather", (ZEROS_2X2, np.zeros(0)), {}),
    (TypeError, "gather", (ZEROS_2X2, np.zeros(0, bool)), {}),
    (TypeError, "gather", (ZEROS_2X2, np.zeros(1, "m8[s]")), {}),
    (TypeError, "gather", (np.array([None]), [0]), {}),
    (TypeError, "gather", (np.array(["a"], np.dtypes.StringDType()), [0]), {}),
    (TypeError, "gather", (np.ma.array([1.0]), [0]), {}),
    (TypeError, "gather", (ZEROS_2X2, np.ma.array([0])), {}),
    (TypeError, "scatter_nd", (ZEROS_2X2, FIRST_ROW, np.ma.array([1.0, 2.0])), {}),
    (TypeError, "scatter_nd", (ZEROS_2X2, FIRST_ROW, np.float64(1)), {}),
    (TypeError, "scatter_nd", (ZEROS_2X2, FIRST_ROW, np.zeros((1, 2), ">f4")), {}),
    (TypeError, "scatter_nd", (ZEROS_2X2, FIRST_ROW, "1"), {}),
    (ValueError, "scatter_nd", (ZEROS_2X2, FIRST_ROW, 1j), {}),
    (ValueError, "scatter_nd", (np.zeros((2, 2), int), FIRST_ROW, 1.5), {}),
    (ValueError, "scatter_nd", (np.zeros((2, 2), bool), FIRST_ROW, 1), {}),
    (ValueError, "scatter_nd", (np.zeros((2, 2), np.int8), FIRST_ROW, 300), {}),
    (ValueError, "gather", (ZEROS_2X2, [0], 2), {}),
    (ValueError, "gather", (ZEROS_2X2, [0], -3), {}),
    (ValueError, "gather", (5, 0), {}),
    (ValueError, "gather", (ZEROS_2X2, [0]), {"mode": "ignore"}),
    (ValueError, "gather", (np.zeros((1,) * 64), np.zeros((1,) * 2, int)), {}),
    (ValueError, "gather", (np.zeros((1,) * 2), np.zeros((1,) * 64, int)), {}),
    (
        ValueError,
        "gather",
        (np.broadcast_to(ZEROS_2X2[0, 0], (2**40, 1)), np.broadcast_to(0, 2**40), 1),
        {},
    ),
    (ValueError, "gather_elements", (ZEROS_2X2, [0]), {}),
    (ValueError, "gather_elements", (ZEROS_2X2, [[0, 0, 0]]), {}),
    (ValueError, "gather_nd", (ZEROS_2X2, 0), {}),
    (ValueError, "gather_nd", (ZEROS_2X2, FIRST_ROW, -1), {}),
    (ValueError, "gather_nd", (ZEROS_2X2, FIRST_ROW, 2), {}),
    (ValueError, "gather_nd", (ZEROS_2X2, [[0, 0, 0]]), {}),
    (ValueError, "gather_nd", (ZEROS_2X2, np.zeros((4, 1), int), 1), {}),
    (ValueError, "scatter_nd", (ZEROS_2X2, FIRST_ROW, np.zeros((1, 3), np.float32)), {}),
    (ValueError, "scatter_nd", (ZEROS_2X2, FIRST_ROW, np.zeros((1, 1, 2), np.float32)), {}),
    (ValueError, "scatter_nd", (ZEROS_2X2, FIRST_ROW, ZEROS_2X2[:1]), {"reduction": "sum"}),
    (IndexError, "gather", (ZEROS_2X2, [0, 2]), {}),
    (IndexError, "gather", (ZEROS_2X2, [-1]), {"negative": False}),
    (IndexError, "gather", (ZEROS_2X2, np.array([2**64 - 1], np.uint64)), {}),
    (IndexError, "gather", (np.zeros((0, 2)), [0]), {"mode": "clip"}),
    (IndexError, "gather", (np.zeros((0, 2)), [0]), {"mode": "wrap"}),
    (IndexError, "gather", (np.zeros((2, 0)), [2]), {}),
    (IndexError, "scatter_nd", (np.zeros((2, 0)), [[2]], np.zeros((1, 0))), {}),
    (IndexError, "gather_nd", (ZEROS_2X2, [[0, 2]]), {}),
]


@pytest.mark.parametrize(("error_type", "op", "args", "kwargs"), RAISED)
def test_exception_types(
    error_type: type[Exception], op: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    with pytest.raises(error_type, match=f"^{op}: |integer") as caught:
        getattr(reference, op)(*args, **kwargs)
    assert caught.type is error_type


@pytest.mark.parametrize(
    "dtype", ["g", "G", "M8[s]", "m8[s]", "S4", "U1", "V4", ">f4", ">i2", PADDED]
)
def test_dtypes_that_do_not_reduce(dtype: Any) -> None:
    data = np.zeros(2, dtype)
    assert reference.scatter_nd(data, [[0]], data[:1]).dtype == data.dtype
    for reduction in FOLDS:
        with pytest.raises(TypeError, match="does not reduce with"):
            reference.scatter_nd(data, np.zeros((0, 1), int), data[:0], reduction=reduction)


@pytest.mark.parametrize(("dtype", "reduction"), [("c8", "max"), ("c16", "min"), ("?", "mean")])
def test_reductions_that_have_no_meaning(dtype: str, reduction: str) -> None:
    data = np.zeros(2, dtype)
    with pytest.raises(TypeError, match="does not reduce with"):
        reference.scatter_elements(data, [0], data[:1], 0, reduction=reduction)


def test_the_first_bad_index_is_named() -> None:
    with pytest.raises(IndexError) as caught:
        reference.gather_nd(ZEROS_2X2[None], [[[0, 1], [0, -3]], [[5, 5], [0, 0]]])
    sentence = "gather_nd: index -3 is out of bounds for axis 1 of size 2 (indices[0, 1, 1])"
    assert str(caught.value) == sentence


def test_checks_come_in_order() -> None:
    bad = np.zeros((3, 3), np.float32)
    with pytest.raises(ValueError, match="`mode`"):
        reference.scatter_nd(ZEROS_2X2, [[0.5]], bad, mode="ignore")
    with pytest.raises(TypeError, match="`indices`"):
        reference.scatter_nd(ZEROS_2X2, [[0.5]], bad)
    with pytest.raises(TypeError, match="`updates`"):
        reference.scatter_nd(ZEROS_2X2, [[9]], bad.astype(np.float64))
    with pytest.raises(ValueError, match="`updates`"):
        reference.scatter_nd(ZEROS_2X2, [[9]], bad)
    with pytest.raises(IndexError, match="index 9"):
        reference.scatter_nd(ZEROS_2X2, [[9]], bad[:1, :2])
