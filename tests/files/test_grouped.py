"""Group reductions of a file's values equal `groups.reduce` in memory bit for bit."""

import os
import re
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from files.storage import bits, get, put
from gatherum import groups
from gatherum.files import reduce_file
from gatherum.groups.functions import FUNCTIONS, IN_FILES, FileFunction
from group_calls import date_values

pytestmark = pytest.mark.usefixtures("quick_sync")
RANDOM = np.random.default_rng(7)
VALUES = RANDOM.standard_normal((60, 5)).astype(np.float32)
VALUES[::7] = np.nan
VALUES[3::11] = -0.0
ROWS = RANDOM.integers(0, 9, 60)  # group 9 is empty
EACH = RANDOM.integers(0, 9, (60, 5)).astype(np.uint8)


def test_type_checkers_know_the_functions() -> None:
    assert set(get_args(FileFunction)) == set(IN_FILES)


@pytest.mark.parametrize("form", ["npy", "zarr3", "hdf5"])
@pytest.mark.parametrize("func", IN_FILES)
def test_the_bits_are_those_in_memory(tmp_path: Path, func: Any, form: str) -> None:
    values = put(tmp_path, "v", VALUES, form)
    for number, (by, axis) in enumerate(((ROWS, 0), (EACH, 0), (EACH, -1))):
        expected = groups.reduce(VALUES, by, 10, func, axis, fill_value=7)
        labels = put(tmp_path, f"g{number}", by)
        out = tmp_path / f"o{number}.npy"
        reduce_file(
            values, labels, out, 10, func, axis, fill_value=7, memory="64KiB", spill_dir=tmp_path
        )
        in_memory = reduce_file(VALUES, by, None, 10, func, axis, fill_value=7)
        for result in (np.load(out), in_memory):
            assert result.dtype == expected.dtype
            assert bits(result) == bits(expected)


@pytest.mark.parametrize("func", IN_FILES)
@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint64, np.complex64])
def test_dtypes(func: Any, dtype: Any) -> None:
    if not FUNCTIONS[func].accepts(np.dtype(dtype)):
        pytest.skip("not defined for this dtype")
    values = RANDOM.integers(0, 100, 50).astype(dtype)
    by = np.arange(50) % 7
    expected = groups.reduce(values, by, func=func)
    result = reduce_file(values, by, func=func)
    assert (result.dtype, result.tobytes()) == (expected.dtype, expected.tobytes())


def test_the_number_of_groups_is_read_where_it_is_not_given(tmp_path: Path) -> None:
    many = RANDOM.integers(0, 1000, 50_000)
    expected = np.bincount(many)
    for form in ("npy", "big-endian", "zarr3"):
        groups = put(tmp_path, "g", many, form)
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


@pytest.mark.parametrize(
    ("arrays", "more", "kind", "message"),
    [
        (([1.0], [0.5]), {}, TypeError,
         "`groups` must have an integer dtype, got float64; write groups.astype(np.int64)"),
        (([1.0, 2.0], [0]), {}, ValueError,
         "`groups` must have shape (2,), got (1,)"),
        (([[1.0]], [0]), {"axis": 2}, ValueError, "`axis` must be in [-2, 2), got 2"),
        (([1.0], [0]), {"func": "std"}, ValueError,
         "`func` must be one of 'sum', 'prod', 'mean', 'max', 'min', 'last', 'count', 'fsum', "
         "'fmean', got 'std'"),
        ((None, [0]), {}, ValueError,
         "`values` must be given for 'sum', got None; 'count' needs none"),
        (([1.0], [0]), {"size": -1}, ValueError, "`size` must be at least 0, got -1"),
        (([b"x"], [0]), {}, TypeError, "`func` 'sum' is not defined for dtype |S1"),
        ((np.ones(1, "m8[s]"), [0]), {}, TypeError,
         "`func` 'sum' is not defined for dtype timedelta64[s]"),
        ((np.ones(1, "m8[s]"), [0]), {"func": "min"}, TypeError,
         "`func` 'min' of dtype timedelta64[s] needs the values in memory; groups.reduce takes "
         "them there"),
        ((np.ones(1, ">M8[D]"), [0]), {"func": "max"}, TypeError,
         "`func` 'max' is not defined for dtype >M8[D]; it needs native byte order"),
        (([1.0], [4]), {"size": 3}, IndexError,
         "index 4 is out of bounds for axis 0 of size 3 (groups[0])"),
        (([1.0], [2**63 - 1]), {}, ValueError,
         "the result, shape (9223372036854775808,) of dtype float64, has more bytes than can be "
         "addressed"),
        (([1.0], [0]), {"size": 2**62}, ValueError,
         "the result, shape (4611686018427387904,) of dtype float64, has more bytes than can be "
         "addressed"),
        (([1.0], [-1]), {}, IndexError,
         "index -1 is out of bounds for axis 0 of size 0 (groups[0])"),
        (([1.0], [0]), {"fill_value": "x"}, ValueError,
         "`fill_value` must convert exactly to the dtype of the result, float64, got 'x'"),
    ],
)  # fmt: skip
def test_refusals(tmp_path: Path, arrays: Any, more: Any, kind: Any, message: str) -> None:
    values, by = (None if one is None else np.array(one) for one in arrays)
    with pytest.raises(kind) as refusal:
        reduce_file(values, by, tmp_path / "o.npy", **more)
    assert str(refusal.value) == f"reduce_file: {message}"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("form", ["npy", "fortran", "npz"])
@pytest.mark.parametrize("unit", ["M8[D]", "m8[ns]", ">M8[s]", "m8"])
def test_empty_groups_of_dates_are_not_a_time(tmp_path: Path, form: str, unit: str) -> None:
    values = date_values(RANDOM, unit, (20, 3))
    by = RANDOM.integers(0, 30, 20)
    stored = put(tmp_path, "v", values, form)
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
