"""Group reductions of a file's values equal `groups.reduce` in memory bit for bit."""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files.storage import bits, get, put
from gatherum import groups
from gatherum.files import reduce_file
from gatherum.files.grouped import calls
from gatherum.files.grouped.folds import is_folded
from gatherum.groups.functions import FUNCTIONS, REDUCES
from group_calls import date_values

pytestmark = pytest.mark.usefixtures("quick_sync")
RANDOM = np.random.default_rng(7)
VALUES = RANDOM.standard_normal((60, 5)).astype(np.float32)
VALUES[::7] = np.nan
VALUES[3::11] = -0.0
ROWS = RANDOM.integers(0, 9, 60)  # group 9 is empty
FOLDED = [func for func in REDUCES if is_folded(func)]
EACH = RANDOM.integers(0, 9, (60, 5)).astype(np.uint8)


@pytest.mark.parametrize("file_format", ["npy", "fortran", "zarr3", "hdf5"])
def test_the_bits_are_those_in_memory(
    tmp_path: Path, file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = put(tmp_path, "v", VALUES, file_format)
    scattered = [name for name, row in FUNCTIONS.items() if row.is_one_scatter]
    for number, (by, axis) in enumerate(((ROWS, 0), (EACH, 0), (EACH, -1))):
        labels = put(tmp_path, f"g{number}", by)
        for func in REDUCES if file_format == "npy" else ("nanmax", *scattered):
            more: Any = {"fill_value": func.endswith(("any", "all")) or 7}
            more |= {"q": 0.3, "method": "midpoint"} if "q" in FUNCTIONS[func].takes else {}
            expected = groups.reduce(VALUES, by, 10, func, axis, **more)
            more |= {"memory": "64KiB", "spill_dir": tmp_path}
            results = [reduce_file(values, labels, None, 10, func, axis, **more)]
            if func in scattered:
                with monkeypatch.context() as patch:  # with buckets on the disk
                    patch.setattr(calls, "is_folded", lambda name: False)
                    patch.setattr(calls, "READING", 1 << 30)
                    reduce_file(values, labels, tmp_path / "o.npy", 10, func, axis, **more)
                results.append(np.load(tmp_path / "o.npy"))
            for result in results:
                assert (func, result.dtype) == (func, expected.dtype)
                assert bits(result) == bits(expected)


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint64, np.complex64, "M8[s]", np.bool_])
def test_functions_of_many_batches(tmp_path: Path, dtype: Any) -> None:
    values = RANDOM.integers(-3, 9, 5000).astype(dtype)
    if values.dtype.kind in "fcM":
        values[::7] = "NaT" if values.dtype.kind == "M" else np.nan
    by = np.sort(RANDOM.integers(0, 40, 5000)).astype(np.uint16)  # accumulators grow
    funcs = [func for func in FOLDED if FUNCTIONS[func].accepts(values.dtype)]
    many = [func for func in funcs if "fsum" not in func and "fmean" not in func]
    assert 2 * values.nbytes * 4 > 64 << 10 or values.dtype.itemsize < 2
    expected = groups.reduce(values, by, func=many)
    result = reduce_file(put(tmp_path, "v", values), by, func=many, memory="64KiB")
    assert list(result) == many
    for func in many:
        assert (func, result[func].dtype) == (func, expected[func].dtype)
        assert result[func].tobytes() == expected[func].tobytes()


def test_more_groups_than_accumulators_in_memory(tmp_path: Path) -> None:
    values, by = RANDOM.standard_normal(5000), RANDOM.permutation(5000)
    paths = put(tmp_path, "v", values), put(tmp_path, "g", by)
    expected = groups.reduce(values, by, func=["sum", "count"])
    result = reduce_file(*paths, func=["sum", "count"], memory="64KiB", spill_dir=tmp_path)
    assert all(result[func].tobytes() == expected[func].tobytes() for func in expected)
    message = (
        "reduce_file: `func` 'nansum' needs its accumulators in memory, and those of shape (5000,) "
        "need more than a third of `memory`, 65536"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        reduce_file(*paths, func=["sum", "nansum"], memory="64KiB", spill_dir=tmp_path)
    message = (
        "reduce_file: `func` 'median' of dtype float64 needs all values in memory, 640000 bytes "
        "with their copies; `memory` is 65536"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        reduce_file(*paths, func=["sum", "median"], memory="64KiB", spill_dir=tmp_path)


def test_weights(tmp_path: Path) -> None:
    weights = put(tmp_path, "w", RANDOM.random(60, np.float32))
    result = reduce_file(VALUES, ROWS, func=["nanmean", "sum"], weights=weights)
    expected = groups.reduce(VALUES, ROWS, func=["nanmean", "sum"], weights=get(weights))
    assert all(result[func].tobytes() == expected[func].tobytes() for func in expected)


def test_functions_without_weights_refuse_them() -> None:
    message = r"^reduce_file: `weights` must be None for 'max'; it is an argument of 'sum', "
    for func in ("max", ["sum", "max"]):
        with pytest.raises(ValueError, match=message):
            reduce_file(VALUES, ROWS, func=func, weights=np.ones(60))  # type: ignore[arg-type]
    flags, weights = VALUES[:, 0] > 0, np.arange(60.0)
    result = reduce_file(flags, ROWS, func="mean", weights=weights)
    assert bits(result) == bits(groups.reduce(flags, ROWS, func="mean", weights=weights))


def test_a_function_that_is_named_twice_is_computed_once() -> None:
    result = reduce_file(VALUES, ROWS, func=["sum", "count", "sum"])
    for name in ("sum", "count"):
        assert bits(result[name]) == bits(groups.reduce(VALUES, ROWS, func=name))


def test_keys_beside_rows(tmp_path: Path) -> None:
    rows = np.arange(6.0).reshape(3, 2)
    reduce_file(rows, np.array(["a", "b", "a"]), tmp_path / "o.npy")
    result = np.load(tmp_path / "o.npy")
    assert result["group"].tolist() == ["a", "b"]
    assert result["sum"].tolist() == [[4, 6], [2, 3]]


def test_the_number_of_groups_is_read_where_it_is_not_given(tmp_path: Path) -> None:
    many = RANDOM.integers(0, 1000, 50_000)
    expected = np.bincount(many)
    for file_format in ("npy", "big-endian", "zarr3"):
        groups = put(tmp_path, "g", many, file_format)
        result = reduce_file(None, groups, func="count", memory="192KiB", spill_dir=tmp_path)
        assert np.array_equal(result, expected)
    assert reduce_file(None, many.reshape(50, 1000), func="count").tolist() == expected.tolist()
    assert reduce_file(np.zeros(0), np.zeros(0, int)).shape == (0,)
    assert reduce_file(None, np.array([-1, -3]), func="count", mode="drop").shape == (0,)


def test_empty_groups_are_named_before_anything_is_written(tmp_path: Path) -> None:
    message = "has no value for an empty group: group 1 is empty"
    for by, where in ((np.array([0, 2]), ""), (np.array([[0, 1], [2, 0]]), r" \(result\[1, 0\]\)")):
        with pytest.raises(
            ValueError, match=f"^reduce_file: .*'max' of dtype int64.*{message}{where}$"
        ):
            reduce_file(np.ones((2, 2), int), by, tmp_path / "o.npy", 3, "max")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("groups_of_rows", [[0, 1, 2], [0, 2, 2]])
def test_values_that_change_during_the_run(tmp_path: Path, groups_of_rows: list[int]) -> None:
    """OSError replaces a result, and the ValueError for the empty group 1."""
    values = put(tmp_path, "v", np.arange(3))

    def change(*_: int) -> None:
        os.utime(values, ns=(1, 1))

    with pytest.raises(OSError, match="changed while it was being read"):
        reduce_file(values, np.array(groups_of_rows), func="max", progress=change)


def test_groups_that_become_valid_are_reported_as_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "first_invalid", lambda *_: None)
    with pytest.raises(IndexError) as caught:
        reduce_file([1.0], [-1])
    assert (type(caught.value), str(caught.value)) == (
        IndexError,
        "reduce_file: an entry was not a valid group, but `groups` changed during the call",
    )


@pytest.mark.parametrize(
    ("arrays", "more", "error_type", "message"),
    [
        (([1.0], [0.5]), {}, TypeError,
         "`groups` must have an integer dtype, got float64; write groups.astype(np.int64)"),
        (([1.0, 2.0], [0]), {}, ValueError,
         "`groups` must have shape (2,), got (1,)"),
        (([[1.0]], [0]), {"axis": 2}, ValueError, "`axis` must be in [-2, 2), got 2"),
        (([1.0], [0]), {"func": "quantile"}, ValueError,
         "`q` must be a number in [0, 1], or a list of them, for 'quantile', got None"),
        (([1.0], [0]), {"func": "quantile", "q": [0, 1]}, ValueError,
         "`q` must be one number for files"),
        (([1.0], [0]), {"func": "median", "q": 0.5}, ValueError,
         "`q` must be None for 'median'; it is an argument of 'quantile' and its nan form"),
        (([1.0], [0]), {"func": "quantile", "q": 0.5, "method": "hazen"}, ValueError,
         "`method` must be one of 'linear', 'lower', 'higher', 'nearest', 'midpoint', got 'hazen'"),
        ((None, [0]), {}, ValueError,
         "`values` must be given for 'sum', got None; 'count' needs none"),
        (([1.0], [0]), {"size": -1}, ValueError, "`size` must be at least 0, got -1"),
        (([b"x"], [0]), {}, TypeError, "`func` 'sum' is not defined for dtype |S1"),
        ((np.ones(1, "m8[s]"), [0]), {}, TypeError,
         "`func` 'sum' is not defined for dtype timedelta64[s]"),
        ((np.ones(1, ">M8[D]"), [0]), {"func": "max"}, TypeError,
         "`func` 'max' is not defined for dtype >M8[D]; it needs native byte order"),
        (([1.0], [4]), {"size": 3}, IndexError,
         "group 4 is not in [0, 3) (groups[0])"),
        (([1.0], [2**63 - 1]), {}, ValueError,
         "the result, shape (9223372036854775808,) of dtype float64, has more bytes than can be "
         "addressed"),
        (([1.0], [0]), {"size": 2**62}, ValueError,
         "the result, shape (4611686018427387904,) of dtype float64, has more bytes than can be "
         "addressed"),
        (([1.0], [-1]), {}, IndexError,
         "group -1 is not in [0, 0) (groups[0])"),
        (([1.0], [0]), {"fill_value": "x"}, ValueError,
         "`fill_value` must convert exactly to the dtype of the result, float64, got 'x'"),
    ],
)  # fmt: skip
def test_reduce_file_checks_its_arguments(
    tmp_path: Path, arrays: Any, more: Any, error_type: Any, message: str
) -> None:
    values, by = (None if one is None else np.array(one) for one in arrays)
    with pytest.raises(error_type) as refusal:
        reduce_file(values, by, tmp_path / "o.npy", **more)
    assert str(refusal.value) == f"reduce_file: {message}"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("file_format", ["npy", "fortran", "npz"])
@pytest.mark.parametrize("unit", ["M8[D]", "m8[ns]", ">M8[s]", "m8"])
def test_empty_groups_of_dates_are_not_a_time(tmp_path: Path, file_format: str, unit: str) -> None:
    values = date_values(RANDOM, unit, (20, 3))
    by = RANDOM.integers(0, 30, 20)
    stored = put(tmp_path, "v", values, file_format)
    for func in ("last", "count"):
        expected = groups.reduce(values, by, 31, func)
        result = reduce_file(stored, by, None, 31, func)
        assert (result.dtype, result.tobytes()) == (expected.dtype, expected.tobytes())


def test_more_groups_than_the_disk_holds(tmp_path: Path) -> None:
    message = (
        r"reduce_file: the result, shape \(1152921504606846976,\) of dtype float32, is larger than "
        rf"what is free in {re.escape(str(tmp_path))}, \d+ bytes$"
    )
    values, by = np.ones(2, np.float32), np.array([0, 2**60 - 1])
    for out, spill in ((tmp_path / "o.npy", None), (None, tmp_path)):
        with pytest.raises(OSError, match=message):
            reduce_file(values, by, out, spill_dir=spill)
    assert os.listdir(tmp_path) == []


def test_an_output_that_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "o.npy"
    reduce_file(VALUES, ROWS, out)
    with pytest.raises(FileExistsError):
        reduce_file(VALUES, ROWS, out, overwrite=False)
    assert np.array_equal(get(str(out)), groups.reduce(VALUES, ROWS), equal_nan=True)
