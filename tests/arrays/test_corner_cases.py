"""Corners of the contract that random calls do not reach."""

import os
import subprocess
import sys

import numpy as np
import pytest

import gatherum
from canaries import guarded, strays
from gatherum import reference
from sizes import family
from source import SOURCE
from strategies import same_bits

ml_dtypes = pytest.importorskip("ml_dtypes", reason="install ml_dtypes for its number types")


@pytest.mark.parametrize("text", ["S0", "U0"])
def test_empty_strings_stay_empty(text):
    data = np.zeros(3, [("a", text)])["a"]
    result = gatherum.gather(data, [0, 2, 1])
    assert result.dtype == np.dtype(text)
    assert result.tolist() == data.tolist()
    assert gatherum.scatter_nd(data, [[0]], data[:1]).dtype == np.dtype(text)


def test_large_and_small_integers_in_one_list():
    result = gatherum.scatter_nd(np.zeros(2, "u8"), [[0], [1]], [2**63, 1])
    assert result.tolist() == [2**63, 1]
    with pytest.raises(ValueError, match="`updates` must convert exactly"):
        gatherum.scatter_nd(np.zeros(2, "i8"), [[0], [1]], [2**63, 1])


@pytest.mark.parametrize("dtype", [np.float64, ml_dtypes.bfloat16])
def test_an_integer_of_any_size_rounds_to_a_float(dtype):
    assert gatherum.scatter_nd(np.zeros(1, dtype), [[0]], 2**70)[0] == dtype(2.0**70)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ml_dtypes.bfloat16])
@pytest.mark.parametrize("width", [1, 33])
def test_the_negative_zero_is_the_lesser(dtype, width):
    for first, second in ((0.0, -0.0), (-0.0, 0.0)):
        data, updates = (np.full((1, width), zero, dtype) for zero in (first, second))
        for reduction, negative in (("min", True), ("max", False)):
            result = gatherum.scatter_nd(data, [[0]], updates, reduction=reduction)
            assert (np.signbit(result.astype(float)) == negative).all()


def test_small_integer_types_are_integers():
    zeros = np.zeros(1, ml_dtypes.int4)
    assert int(gatherum.scatter_nd(zeros, [[0]], -8)[0]) == -8
    with pytest.raises(ValueError, match=r"must be an integer where `data` is int4, got 1\.5"):
        gatherum.scatter_nd(zeros, [[0]], 1.5)
    with pytest.raises(ValueError, match=r"must convert exactly .* int4, got 100"):
        gatherum.scatter_nd(zeros, [[0]], 100)
    with pytest.raises(ValueError, match=r"must convert exactly .* uint4, got -1"):
        gatherum.scatter_nd(np.zeros(1, ml_dtypes.uint4), [[0]], -1)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("g", 2**63 + 1),
        ("G", 1 + 2j),
        ("c8", complex(0.5, np.nan)),
        ("M8[s]", np.datetime64("NaT", "s")),
        ("M8[s]", np.datetime64("2020-01-02")),
        ([("a", "i4"), ("b", "f8")], (1, 2.0)),
    ],
)
def test_a_fill_value_that_converts_exactly(dtype, value):
    result = gatherum.gather(np.zeros(1, dtype), [5], mode="fill", fill_value=value)[0]
    expected = np.array(value, dtype)[()]
    assert result == expected or (str(result) == str(expected))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("f4", np.int32(2**24 + 1)),
        ("f8", np.complex128(1.5j)),
        ("f4", np.complex64(1 + 2j)),
        ("f4", [1.0]),
        ("c8", np.complex128(complex(0.1, np.nan))),
        ("f8", np.timedelta64(0, "s")),
        ([("a", "i4")], (1.5,)),
    ],
)
def test_a_fill_value_that_does_not(dtype, value):
    with pytest.raises(ValueError, match="`fill_value` must convert exactly"):
        gatherum.gather(np.zeros(1, dtype), [5], mode="fill", fill_value=value)


def test_records_may_be_given_as_tuples():
    data = np.zeros(2, [("a", "i4"), ("b", "f8")])
    result = gatherum.scatter_nd(data, [[1]], [(1, 2.5)])
    assert result.tolist() == [(0, 0.0), (1, 2.5)]


def test_a_plan_takes_arrays_only():
    data, indices = np.zeros(3), np.array([0, 1])
    plan = gatherum.plan("gather", data, indices)
    with pytest.raises(TypeError, match=r"`data` must be a numpy.ndarray without a mask, got list"):
        plan.run([1.0, 2.0, 3.0], indices)
    with pytest.raises(TypeError, match=r"`indices` must be .* without a mask, got MaskedArray"):
        plan.run(data, np.ma.array(indices, mask=[0, 1]))
    with pytest.raises(TypeError, match=r"`out` must be a numpy.ndarray without a mask, got list"):
        gatherum.plan("gather", data, indices, out=[1.0])


def test_memory_for_grouping_is_had_before_anything_is_written():
    code = """
import resource
import numpy as np
import gatherum
gatherum.set_num_threads(1)
data = np.zeros((2, 1_000_000), np.float16)
indices = np.arange(600_000)[None].repeat(2, 0)
updates = np.ones((2, 600_000), np.float16)
before = data.copy()
plan = gatherum.plan("scatter_elements", data, indices, updates, axis=1, reduction="add", out=data)
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (3 << 20), used + (3 << 20)))
try:
    gatherum.scatter_elements(data, indices, updates, 1, reduction="add", out=data)
except MemoryError:
    print("refused", bool((data == before).all()))
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": SOURCE, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "refused True\n"


def test_a_number_fills_no_record():
    data = np.zeros(1, [("a", "i4"), ("b", "f8")])
    with pytest.raises(ValueError, match="`fill_value` must convert exactly"):
        gatherum.gather(data, [5], mode="fill", fill_value=1)
    whole = np.array((3, 4.5), data.dtype)[()]
    assert gatherum.gather(data, [5], mode="fill", fill_value=whole)[0] == whole


@pytest.mark.parametrize("operators", [gatherum, reference])
def test_a_date_fills_no_string_that_is_too_short(operators):
    with pytest.raises(ValueError, match="`fill_value` must convert exactly"):
        operators.gather(np.zeros(1, "U3"), [5], mode="fill", fill_value=np.datetime64("2020"))


@pytest.mark.parametrize("value", [2**63, 2**70, -(2**63)])
def test_an_integer_of_any_size_fills_and_rounds(value):
    data = np.zeros(1, ml_dtypes.bfloat16)
    for near in (value, value + 1):
        assert float(gatherum.gather(data, [5], mode="fill", fill_value=near)[0]) == value


NUMBERS = [True, 1, -1, 300, 2**24 + 1, 2**70, 10**400, 0.1, 1.0, -0.0, 1e300, float("nan"),
           float("-inf"), 1j, complex(0.1, float("nan")), complex(1e39, 0)]  # fmt: skip


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f4", "f8", "c8", "c16", "S3", "M8[s]",
                                   "bfloat16", "int4", ">f4"])  # fmt: skip
@pytest.mark.parametrize("operators", [gatherum, reference], ids=["functions", "oracle"])
def test_a_number_fills_as_it_updates(operators, dtype):
    data = np.zeros(1, getattr(ml_dtypes, dtype, dtype))
    for value in NUMBERS:
        filling = {"mode": "fill", "fill_value": value}
        try:
            expected = operators.scatter_nd(data, [[0]], value)
        except (TypeError, ValueError):
            with pytest.raises(ValueError, match="`fill_value` must "):
                operators.gather(data, [5], **filling)
        else:
            assert same_bits(operators.gather(data, [5], **filling), expected)


@pytest.mark.parametrize("op", ["scatter_elements", "scatter_nd"])
def test_none_is_rejected_as_updates(op):
    data, indices = np.zeros(3), np.zeros(1 if op == "scatter_elements" else (1, 1), int)
    for out in (None, data):
        with pytest.raises(TypeError, match=f"^{op}: `updates` must be an array, got NoneType$"):
            getattr(gatherum, op)(data, indices, None, out=out)


def test_an_output_whose_rows_lie_between_each_other():
    memory = np.full(8, 9, np.float32)
    out = np.lib.stride_tricks.as_strided(memory, (2, 3), (12, 8))
    assert gatherum.gather(np.arange(6, dtype="f4").reshape(2, 3), [1, 0], out=out) is out
    assert out.tolist() == [[3, 4, 5], [0, 1, 2]]
    assert memory.tolist() == [3, 9, 4, 0, 5, 1, 9, 2]


def test_indices_and_updates_whose_rows_share_memory():
    windows = np.lib.stride_tricks.sliding_window_view
    indices, updates = windows(np.arange(6), 3), windows(np.arange(6, dtype="f4"), 3)
    result = gatherum.scatter_nd(np.zeros(6, "f4"), indices[..., None], updates, reduction="add")
    assert result.tolist() == [0, 2, 6, 9, 8, 5]


def test_rows_of_three_indices_each_in_groups():
    data, indices = np.zeros((2, 3, 4, 5), np.float16), np.argwhere(np.ones((2, 3, 4)))
    updates = np.arange(120, dtype=np.float16).reshape(24, 5)
    plan = gatherum.plan("scatter_nd", data, indices, updates, reduction="add")
    assert family(plan.algorithm) == "by_destination"
    result = gatherum.scatter_nd(data, indices, updates, reduction="add")
    assert result.tolist() == updates.reshape(data.shape).tolist()


def test_columns_that_two_indices_address():
    rng = np.random.default_rng(0)
    data = rng.random((2, 3, 1 << 15), np.float32).transpose(2, 0, 1)
    indices = np.stack([rng.integers(0, 2, 1 << 15), rng.integers(0, 3, 1 << 15)], axis=1)
    result = gatherum.gather_nd(data, indices, batch_dims=1)
    assert np.array_equal(result, data[np.arange(1 << 15), indices[:, 0], indices[:, 1]])


def test_an_undecided_overlap_is_treated_as_an_overlap():
    memory, strided = np.zeros(192_163_377, np.int8), np.lib.stride_tricks.as_strided
    data = strided(memory, (1049, 1049, 1049), (36674, 61119, 85569))
    out = strided(memory[64_023_025:], (900, 900, 1), (12223, 12224, 1))
    with pytest.raises(ValueError, match="must not share memory with `data`"):
        gatherum.gather_elements(data, np.zeros(out.shape, np.int8), 2, out=out)


def test_out_must_not_be_the_transpose_of_the_data():
    data = np.arange(9.0).reshape(3, 3)
    for _ in range(2):
        with pytest.raises(ValueError, match="must not share memory with `data`"):
            gatherum.scatter_nd(data, [[0]], data[:1].copy(), out=data.T)
    assert data.tolist() == np.arange(9.0).reshape(3, 3).tolist()


def test_out_must_not_be_the_reversed_data():
    data = np.arange(4.0)
    for out, operand in ((data[::-1], data), (data, data[::-1])):
        with pytest.raises(ValueError, match="must not share memory with `data`"):
            gatherum.gather(operand, np.arange(4), out=out)
    assert data.tolist() == [0, 1, 2, 3]


def test_an_output_of_one_item_that_is_an_operand():
    one = np.zeros(1, np.int64)
    for data, indices, name in ((one, one.copy(), "data"), (one.copy(), one, "indices")):
        with pytest.raises(ValueError, match=f"must not share memory with `{name}`"):
            gatherum.gather(data, indices, out=one)
    with pytest.raises(ValueError, match="must not share memory with `updates`"):
        gatherum.scatter_nd(one.copy(), one[:, None].copy(), one, out=one)


def test_calls_that_differ_in_two_flags():
    data, indices, updates = np.ones(3), np.array([[-1]]), np.array([5.0])
    flags = {"include_self": True, "negative": False}
    gatherum.scatter_nd(data, indices + 1, updates, reduction="add", **flags)
    flags = {"include_self": False, "negative": True}
    assert gatherum.scatter_nd(data, indices, updates, reduction="add", **flags).tolist() == [
        1,
        1,
        5,
    ]


@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8"])
@pytest.mark.parametrize("count", [1, 2, 4, 8, 16, 32])
def test_every_item_of_a_missing_row_is_filled(dtype, count):
    for rows in (1, 1000):
        result = gatherum.gather(np.zeros((2, count), dtype), [5] * rows, mode="fill", fill_value=7)
        assert np.array_equal(result, np.full((rows, count), 7, dtype))


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_of_any_number_of_bytes(threads, settings_restored):
    gatherum.set_num_threads(threads)
    for count in [*range(1, 200), 1023, 4095]:
        data, out = (
            np.arange(3 * count).astype(np.uint8).reshape(3, count),
            guarded((4, count), "u1"),
        )
        gatherum.gather(data, [1, 2, 0, 2], out=out)
        assert out.tobytes() == data[[1, 2, 0, 2]].tobytes()
        assert strays(out) == [], count


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "g"])
@pytest.mark.parametrize("bits", [np.uint16(0x7C01), np.uint32(0x7F800001)])
def test_a_signalling_nan_fills_without_a_warning(dtype, bits):
    """NumPy warns when it converts one to another width, and warnings are errors here."""
    value = np.array([bits]).view(f"f{bits.itemsize}")[0]
    result = gatherum.gather(np.zeros(3, dtype), [5], mode="fill", fill_value=value)
    assert np.isnan(result).all()


NARROW = ["bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("operators", [gatherum, reference], ids=["functions", "oracle"])
def test_numbers_round_once_to_types_of_few_bits(operators, name):
    """Converted through float32, as ml_dtypes does, these would be ties."""
    dtype = np.dtype(getattr(ml_dtypes, name))
    last = 2.0 ** (-7 if name == "bfloat16" else -2 if "e5m2" in name else -3)
    for value, expected in ((1 + last / 2 + 2**-40, 1 + last), (1 + last * 1.5 - 2**-40, 1 + last),
                            (1 + last / 2, 1.0), (-1 - last / 2 - 2**-40, -1 - last)):  # fmt: skip
        zeros = np.zeros(2, dtype)
        result = operators.scatter_nd(zeros, [[1]], value)
        assert result.astype(float).tolist() == [0, expected]
        assert operators.scatter_nd(zeros, [[1]], [value]).astype(float)[1] == expected
        filled = operators.gather(zeros, [5], mode="fill", fill_value=value)
        assert filled.astype(float).tolist() == [expected]


@pytest.mark.parametrize("operators", [gatherum, reference], ids=["functions", "oracle"])
def test_an_infinity_is_not_converted_to_another_number(operators):
    """Types without infinity reject it: it would become NaN, or the largest number."""
    for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1fn"):
        zeros = np.zeros(1, getattr(ml_dtypes, name))
        for value in (np.inf, -np.inf):
            with pytest.raises(ValueError, match="`updates` must"):
                operators.scatter_nd(zeros, [[0]], float(value))
            with pytest.raises(ValueError, match="`fill_value` must"):
                operators.gather(zeros, [5], mode="fill", fill_value=float(value))
