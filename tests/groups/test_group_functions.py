"""Functions over groups: the oracle's bits, over dtypes, layouts, modes and hostile values."""

import re
import typing
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import gatherum
from gatherum.files import reduce_file
from gatherum.files.grouped.folds import is_folded
from gatherum.groups import function_names, functions, namespace, rounding
from gatherum.groups.cumulative import RANKS
from gatherum.groups.order_statistics import METHODS
from gatherum.reference import group_numbers
from gatherum.reference import groups as reference
from gatherum.reference.reductions import nearest
from group_calls import call, date_values, laid_out, near_ties, outcome, run, same, values_of
from samples import diagonal
from strategies import DATA_DTYPES, same_bits

NAN = float("nan")
EXTREMES = ("max", "min")


def dates(*days):
    return np.array(days, "M8[D]")


def spans(*seconds):
    return np.array(seconds, "m8[s]")


CASES = {
    "sum": ([1, 2, 4], [1, 1, 0], {}, [4, 3]),
    "a sum of nothing": ([1, 2], [2, 2], {}, [0, 0, 3]),
    "a product of nothing": ([2, 3], [1, 1], {"func": "prod"}, [1, 6]),
    "no value": ([], [], {"size": 2}, [0.0, 0.0]),
    "no group": (np.zeros(0), [], {"func": "max"}, np.zeros(0)),
    "means of integers are rounded down": ([-1, -2, 3], [0, 0, 1], {"func": "mean"}, [-2, 3]),
    "means of nothing": ([1.0], [1], {"func": "mean"}, [NAN, 1]),
    "var": ([1.0, 3.0, 7.0], [0, 0, 1], {"func": "var"}, [1.0, 0.0]),
    "var with ddof": ([1.0, 3.0, 7.0], [0, 0, 1], {"func": "var", "ddof": 1}, [2.0, NAN]),
    "var of integers": ([1, 2], [0, 0], {"func": "var"}, [0.25]),
    "var of complex numbers": ([1j, -1j, 1, -1], [0] * 4, {"func": "var"}, [1.0]),
    "std": ([1.0, 5.0], [0, 0], {"func": "std"}, [2.0]),
    "var of numbers far from 0": (
        np.tile(np.float32([1e5 - 1, 1e5 + 1]), 10_000),
        np.zeros(20_000, int),
        {"func": "var"},
        np.float32([1]),
    ),
    "std of numbers far from 0": (
        np.tile(np.float32([1e5 - 1, 1e5 + 1]), 10_000),
        np.zeros(20_000, int),
        {"func": "std"},
        np.float32([1]),
    ),
    "var of complex numbers far from 0": (
        np.tile(np.complex64([1e5 - 1j, 1e5 + 1j]), 10_000),
        np.zeros(20_000, int),
        {"func": "var"},
        np.float32([1]),
    ),
    "var of large integers": (np.arange(4) + 2**60, [0] * 4, {"func": "var"}, [1.25]),
    "var of the largest integers": (
        2**64 - 1 - np.arange(4, dtype="u8"),
        [0] * 4,
        {"func": "var", "ddof": 1},
        [5 / 3],
    ),
    "var of integers as far apart as can be": (
        [-(2**63), 2**63 - 1],
        [0, 0],
        {"func": "var"},
        [2.0**126],
    ),
    "nanstd of numbers far from 0": (
        np.float32([1e7, NAN, 1e7 + 2]),
        [0, 0, 0],
        {"func": "nanstd"},
        np.float32([1]),
    ),
    "max has the larger zero": ([-0.0, 0.0, -0.0], [0, 0, 1], {"func": "max"}, [0.0, -0.0]),
    "the least integer is a value": (
        np.array([-128, -128, 5], "i1"),
        [0, 0, 1],
        {"func": "max"},
        np.array([-128, 5], "i1"),
    ),
    "the greatest integer is a value": (
        np.array([255, 7], "u1"),
        [0, 1],
        {"func": "min"},
        np.array([255, 7], "u1"),
    ),
    "NaN wins": ([1.0, NAN, 2.0], [0, 0, 1], {"func": "max"}, [NAN, 2.0]),
    "NaN is skipped": ([1.0, NAN, 2.0], [0, 0, 1], {"func": "nanmax"}, [1.0, 2.0]),
    "NaN alone is nothing": ([NAN, 2.0], [0, 1], {"func": "nansum"}, [0.0, 2.0]),
    "the first of equals": ([7, 9, 9, 7], [0, 0, 0, 1], {"func": "argmax"}, [1, 3]),
    "zeros are equal": ([-0.0, 0.0], [0, 0], {"func": "argmax"}, [0]),
    "the first NaN": ([1.0, NAN, NAN], [0, 0, 0], {"func": "argmin"}, [1]),
    "positions count along the axis": (
        [[1, 5, 5], [8, 2, 8]],
        [0, 1, 1],
        {"func": "argmax", "axis": 1},
        [[0, 1], [0, 2]],
    ),
    "no NaN, no difference": ([7, 9], [0, 0], {"func": "nanargmax"}, [1]),
    "first": ([5, 6, 7], [0, 1, 0], {"func": "first"}, [5, 6]),
    "last": ([5, 6, 7], [0, 1, 0], {"func": "last"}, [7, 6]),
    "the first that is not NaN": ([NAN, 6, 7], [0, 0, 0], {"func": "nanfirst"}, [6.0]),
    "count": ([5, 6, 7], [2, 0, 2], {"func": "count"}, [1, 0, 2]),
    "counts of slices": (np.zeros((2, 2)), [1, 1], {"func": "count"}, [[0, 0], [2, 2]]),
    "counts without NaN": ([[NAN, 1], [2, 3]], [0, 0], {"func": "nancount"}, [[1, 2]]),
    "any": ([0, 0, 3], [0, 0, 2], {"func": "any"}, [False, False, True]),
    "all": ([1, 0, 3], [0, 0, 2], {"func": "all"}, [False, True, True]),
    "NaN is true": ([NAN, 0.0], [0, 1], {"func": "any"}, [True, False]),
    "logsumexp": ([0.0, 0.0, 3.0], [0, 0, 1], {"func": "logsumexp"}, [np.log(2), 3.0]),
    "logsumexp of nothing": ([0.0], [1], {"func": "logsumexp"}, [-np.inf, 0.0]),
    "logsumexp of infinite numbers": (
        [-np.inf, -np.inf, np.inf, 1.0],
        [0, 0, 1, 1],
        {"func": "logsumexp"},
        [-np.inf, np.inf],
    ),
    "logsumexp of integers": ([1000, 1000], [0, 0], {"func": "logsumexp"}, [1000 + np.log(2)]),
    "fsum": ([1e16, 1.0, -1e16, 5.0], [0, 0, 0, 1], {"func": "fsum"}, [1.0, 5.0]),
    "fsum of nothing": ([1.0], [1], {"func": "fsum"}, [0.0, 1.0]),
    "fmean": ([1e16, 1.0, -1e16], [1, 1, 1], {"func": "fmean"}, [NAN, 1 / 3]),
    "fmean without NaN": ([1e16, NAN, -1e16, 1.0], [0, 0, 0, 0], {"func": "nanfmean"}, [1 / 3]),
    "a quantile": ([1.0, 5.0, 2.0, 7.0], [0, 0, 0, 1], {"func": "quantile", "q": 0.75}, [3.5, 7]),
    "quantiles": ([1, 5, 2], [0, 0, 0], {"func": "quantile", "q": [0, 1]}, [[1.0], [5.0]]),
    "a quantile of integers that is one of them": (
        [1, 5, 2, 7],
        [0, 0, 0, 1],
        {"func": "quantile", "q": 0.75, "method": "higher"},
        [5, 7],
    ),
    "the exact median of integers": (
        np.array([-100, 100], "i1"),
        [0, 0],
        {"func": "median"},
        [0.0],
    ),
    "a median with NaN": ([1.0, NAN, 2.0], [0, 0, 1], {"func": "median"}, [NAN, 2.0]),
    "a sum of negative zeros without NaN": (
        [[-0.0, NAN], [NAN, NAN]],
        [0, 0],
        {"func": "nansum", "fill_value": 5},
        [[-0.0, 5.0]],
    ),
    "a mean without NaN of more values than a byte counts": (
        np.array([2.0] * 299 + [NAN, 3.0]),
        [0] * 300 + [1],
        {"func": "nanmean"},
        [2.0, 3.0],
    ),
    "a median without NaN": ([1.0, NAN, 2.0], [0, 0, 1], {"func": "nanmedian"}, [1.0, 2.0]),
    "distinct values": ([NAN, NAN, -0.0, 0.0], [0, 0, 0, 0], {"func": "nunique"}, [2]),
    "distinct values of nothing": ([3], [1], {"func": "nunique"}, [0, 1]),
    "the most frequent value": ([3, 1, 3, 1, 2], [0] * 5, {"func": "mode"}, [1]),
    "the most frequent date": (
        dates("NaT", "NaT", "2020-01-01"),
        [0] * 3,
        {"func": "mode"},
        dates("NaT"),
    ),
    "NaT wins as the latest": (
        dates("2020-01-02", "NaT", "1969-01-01"),
        [0, 0, 1],
        {"func": "max"},
        dates("NaT", "1969-01-01"),
    ),
    "NaT wins as the earliest": (
        spans(3, "NaT", -1, 5),
        [0, 0, 1, 1],
        {"func": "min"},
        spans("NaT", -1),
    ),
    "NaT is skipped": (
        dates("2020-01-02", "NaT", "1969-01-01", "1969-01-02"),
        [0, 0, 1, 1],
        {"func": "nanmax"},
        dates("2020-01-02", "1969-01-02"),
    ),
    "NaT is no minimum": (spans(3, "NaT"), [0, 0], {"func": "nanmin"}, spans(3)),
    "NaT alone is nothing": (spans("NaT", 3), [0, 1], {"func": "nanmin"}, spans("NaT", 3)),
    "the first NaT": (spans(3, "NaT", "NaT"), [0, 0, 0], {"func": "argmax"}, [1]),
    "the first NaT of the least": (spans(3, "NaT", "NaT"), [0, 0, 0], {"func": "argmin"}, [1]),
    "the latest beside NaT": (spans(3, "NaT", 7), [0, 0, 0], {"func": "nanargmax"}, [2]),
    "the earliest beside NaT": (spans(3, "NaT", 7), [0, 0, 0], {"func": "nanargmin"}, [0]),
    "counts without NaT": (spans(3, "NaT", 7), [0, 0, 1], {"func": "nancount"}, [1, 1]),
    "the first that is not NaT": (
        dates("NaT", "2020-01-01"),
        [0, 0],
        {"func": "nanfirst"},
        dates("2020-01-01"),
    ),
    "the last that is not NaT": (spans(3, "NaT"), [0, 0], {"func": "nanlast"}, spans(3)),
    "the first of no date": (spans(3), [1], {"func": "first"}, spans("NaT", 3)),
    "the last of no date": (dates("2020-01-01"), [1], {"func": "last"}, dates("NaT", "2020-01-01")),
    "the latest of no date": (
        dates("2020-01-01"),
        [1],
        {"func": "max"},
        dates("NaT", "2020-01-01"),
    ),
    "what a group of no date becomes": (
        dates("2020-01-01"),
        [1],
        {"func": "min", "fill_value": np.datetime64("1999-01-01")},
        dates("1999-01-01", "2020-01-01"),
    ),
    "the ends of dates": (
        np.array([2**63 - 1, -(2**63) + 1] * 2, "m8[s]"),
        [0, 1, 2, 2],
        {"func": "max"},
        np.array([2**63 - 1, -(2**63) + 1, 2**63 - 1], "m8[s]"),
    ),
    "the other ends of dates": (
        np.array([2**63 - 1, -(2**63) + 1] * 2, "m8[as]"),
        [0, 1, 2, 2],
        {"func": "min"},
        np.array([2**63 - 1, -(2**63) + 1, -(2**63) + 1], "m8[as]"),
    ),
    "dates in the other byte order": (
        dates("NaT", "2020-01-01").astype(">M8[D]"),
        [0, 0],
        {"func": "nanfirst", "size": 2},
        dates("2020-01-01", "NaT").astype(">M8[D]"),
    ),
    "a group for each value": ([[1, 2], [4, 8]], [[0, 1], [0, 0]], {}, [[5, 8], [0, 2]]),
    "a group for each value, along rows": (
        [[1, 2], [4, 8]],
        [[0, 1], [0, 0]],
        {"axis": 1},
        [[1, 2], [12, 0]],
    ),
    "what empty groups become": ([5], [1], {"func": "max", "fill_value": -1}, [-1, 5]),
    "a sum can be another number": ([5], [1], {"fill_value": 9}, [9, 5]),
    "entries from the end": ([1, 2], [-1, 0], {"size": 2, "negative": True}, [2, 1]),
    "entries that are no group": ([1, 2, 4], [0, 9, -1], {"size": 2, "mode": "drop"}, [1, 0]),
    "entries that are moved": ([1, 2, 4], [0, 9, -1], {"size": 2, "mode": "clip"}, [5, 2]),
    "a position whose neighbours are left out": (
        [9, 1, 1],
        [7, 0, 0],
        {"size": 1, "mode": "drop", "func": "argmax"},
        [1],
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("module", [gatherum.groups, reference], ids=["package", "oracle"])
def test_cases(name, module):
    values, groups, more, answer = CASES[name]
    result = module.reduce(values, groups, **more)
    assert result.flags.c_contiguous and result.flags.writeable
    assert same_bits(np.asarray(answer, result.dtype), result)


@pytest.mark.parametrize("module", [gatherum.groups, reference], ids=["package", "oracle"])
@pytest.mark.parametrize(
    ("values", "answer"),
    [
        (np.tile(np.float32([1e5 - 1, 1e5 + 1]), 10_000), np.tile(np.float32([-1, 1]), 10_000)),
        (np.complex64([1e7 - 1j, 1e7 + 2 + 1j]), np.complex64([-1 - 1j, 1 + 1j])),
        (np.arange(4) + 2**60, np.array([-1.5, -0.5, 0.5, 1.5])),
        (np.array([0, 2**64 - 1], "u8"), np.array([-(2.0**63), 2.0**63])),
    ],
    ids=["float32", "complex64", "int64", "uint64"],
)
def test_centred_values_that_are_far_from_0(module, values, answer):
    result = module.transform(values, np.zeros(len(values), int), "centre")
    assert same_bits(answer, result)


TRANSFORMED = {
    "cumsum": ([3, 4, 5, 6], {}, [3, 4, 8, 10]),
    "cumprod": (np.array([100, 2, 3, 7], "i1"), {}, np.array([100, 2, 44, 14], "i1")),
    "cummax": ([1.0, -0.0, NAN, 0.0], {}, [1.0, -0.0, NAN, 0.0]),
    "cummin": (spans(3, 5, 2, "NaT"), {}, spans(3, 5, 2, "NaT")),
    "cumcount": (["a", "b", "c", "d"], {}, [0, 0, 1, 1]),
    "rank": ([7.0, NAN, 7.0, 1.0], {}, [1.5, 2.0, 1.5, 1.0]),
    "rank, dense": ([7.0, NAN, 7.0, 1.0], {"method": "dense"}, [1, 2, 1, 1]),
}


@pytest.mark.parametrize("name", TRANSFORMED)
@pytest.mark.parametrize("module", [gatherum.groups, reference], ids=["package", "oracle"])
def test_cumulative_functions_and_ranks(module, name):
    values, more, answer = TRANSFORMED[name]
    result = module.transform(values, [0, 1, 0, 1], name.partition(",")[0], **more)
    assert same_bits(np.asarray(answer, result.dtype), result)


@pytest.mark.parametrize("dtype", ["f4", "f2", "i8"])
def test_long_and_short_groups_have_left_folds(dtype):
    rng = np.random.default_rng(3)
    values = (rng.standard_normal(3000) * 9).astype(dtype)
    groups = np.where(rng.random(3000) < 0.5, 0, rng.integers(0, 900, 3000))
    result = gatherum.groups.transform(values, groups, "cumsum")
    for group in (0, 5, 17):
        part = values[groups == group]
        sums = np.add.accumulate(part.astype("f4" if dtype == "f2" else dtype)).astype(dtype)
        assert same_bits(sums, result[groups == group])


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_a_deviation_is_rounded_once(name):
    """In float64, the square roots of the neighbours of a tie's square equal the tie."""
    dtype = np.dtype(name)
    codes = np.dtype(f"u{dtype.itemsize}")
    lower = np.ones((), dtype).view(codes)
    tie = np.array([lower, lower + 1], codes).view(dtype).astype(np.float64).mean()
    squares = np.array([*np.nextafter(tie * tie, [4, 0]), tie * tie])
    assert (np.sqrt(squares) == tie).all()
    nearest = [int(lower) + 1, int(lower), int(lower) + int(lower) % 2]
    result = rounding.rounded_root(namespace, squares, dtype)
    assert result.view(codes).tolist() == nearest
    roots = [group_numbers.root_of(square, dtype) for square in squares]
    oracle = [group_numbers.rounded(root, dtype) for root in roots]
    assert [int(root.view(codes)) for root in oracle] == nearest


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_a_half_is_rounded_once(name):
    """The numbers are next to ties, below the smallest half, and above the largest."""
    dtype = np.dtype(name)
    values = near_ties(np.random.default_rng(6), dtype)
    expected = [float(nearest(Fraction(value), dtype)) for value in values.tolist()]
    with np.errstate(all="ignore"):
        result = namespace.rounded(values.copy(), dtype).astype(float)
    assert same_bits(np.array(expected), result)


@pytest.mark.parametrize(("func", "dtype"), diagonal(3, functions.REDUCES, DATA_DTYPES), ids=str)
def test_a_reduction_has_the_bits_of_the_oracle(func, dtype):
    rng = np.random.default_rng([*func.encode(), *str(dtype).encode()])
    for _ in range(6):
        shape, groups, more = call(rng)
        values = laid_out(rng, values_of(rng, dtype, shape))
        more |= {"func": func, "ddof": int(rng.integers(3))}
        if func.endswith("quantile"):
            more |= {"q": float(rng.choice([0, 0.5, 1, rng.random()]))}
            more |= {"method": METHODS[rng.integers(len(METHODS))]}
        if rng.random() < 0.4 and dtype.char not in "mMSUVg":
            more["fill_value"] = bool(rng.random() < 0.5)
        expected = outcome(run, values, groups, module=reference, **more)
        assert same(outcome(run, values, groups, **more), expected)


@pytest.mark.parametrize(
    ("func", "unit"),
    diagonal(3, functions.REDUCES, ["M8[s]", "M8", "m8[3D]", "m8", ">M8[ns]"]),
)
def test_dates_have_the_bits_of_the_oracle(func, unit):
    rng = np.random.default_rng([*func.encode(), *unit.encode()])
    for _ in range(10):
        shape, groups, more = call(rng)
        values = laid_out(rng, date_values(rng, unit, shape))
        more |= {"func": func}
        if rng.random() < 0.4:
            gives_dates = func.endswith(("first", "last")) or func.removeprefix("nan") in EXTREMES
            more["fill_value"] = date_values(rng, unit, ())[()] if gives_dates else 0
        expected = outcome(run, values, groups, module=reference, **more)
        assert same(outcome(run, values, groups, **more), expected)


@pytest.mark.parametrize(
    ("func", "dtype"), diagonal(3, list(functions.TRANSFORMS), DATA_DTYPES), ids=str
)
def test_a_transform_has_the_bits_of_the_oracle(func, dtype):
    rng = np.random.default_rng([*func.encode(), *str(dtype).encode()])
    for _ in range(10):
        shape, groups, more = call(rng)
        values = laid_out(rng, values_of(rng, dtype, shape))
        if func == "rank":
            more |= {"method": RANKS[rng.integers(len(RANKS))]}
        expected = outcome(reference.transform, values, groups, func, **more)
        assert same(outcome(gatherum.groups.transform, values, groups, func, **more), expected)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("func", ["sum", "mean", "var", "max", "argmax", "first", "nansum"])
def test_many_values_on_threads(settings_restored, func, threads):
    rng = np.random.default_rng(5)
    values = rng.standard_normal(120_000).astype("f4")
    values[rng.random(len(values)) < 0.001] = np.nan
    groups = rng.integers(0, 50, len(values))
    gatherum.set_num_threads(threads)
    result = gatherum.groups.reduce(values, groups, func=func)
    order = np.argsort(groups, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(groups))[:-1])
    for group, part in enumerate(parts):
        alone = gatherum.groups.reduce(values[part], np.zeros(len(part), int), func=func)
        expected = part[alone[0]] if func == "argmax" else alone[0]
        assert same_bits(np.asarray(expected), np.asarray(result[group]))


@pytest.mark.parametrize("module", [gatherum.groups, reference], ids=["package", "oracle"])
@pytest.mark.parametrize("ddof", [2, 2**63 - 1, 2**63, 2**70])
def test_a_large_ddof_leaves_no_freedom(module, ddof):
    result = module.reduce([1.0, 2.0], [0, 0], 2, "var", ddof=ddof, fill_value=7)
    assert same_bits(np.array([NAN, 7]), result)


@pytest.mark.parametrize("func", functions.REDUCES)
@pytest.mark.parametrize("whole", [True, False])
def test_values_of_64_dimensions(func, whole):
    values = np.ones((1,) * 63 + (2,))
    groups = np.zeros(values.shape if whole else 2, np.int64)
    result = run(values, groups, func, axis=-1)
    expected = run(values.ravel(), groups.ravel(), func)
    assert result.shape == (1,) * 64
    assert same_bits(expected, result.ravel())


def test_the_names_for_type_checkers_are_those_of_the_tables():
    assert typing.get_args(function_names.ReduceName) == functions.REDUCES
    assert typing.get_args(function_names.TransformName) == tuple(functions.TRANSFORMS)


def test_docstrings_name_every_function():
    for name, row in functions.FUNCTIONS.items():
        if not row.skips_nan:
            assert f'``"{name}"``' in gatherum.groups.reduce.__doc__
    for name in functions.TRANSFORMS:
        assert f'``"{name}"``' in gatherum.groups.transform.__doc__


def test_the_notes_of_reduce_file_list_the_functions_that_run_in_batches():
    folded, excepted = re.search(
        "the functions (.*) and their nan forms are computed in one pass.*"
        "not fit, (.*) and the nan forms raise ValueError",
        " ".join(reduce_file.__doc__.split()),
    ).groups()
    rows = [row for row in functions.FUNCTIONS.values() if not row.skips_nan]
    assert folded.split(", ") == [row.name for row in rows if is_folded(row.name)]
    assert excepted.split(", ") == [
        row.name for row in rows if is_folded(row.name) and not row.is_one_scatter
    ]


def test_each_function_has_a_row_that_skips_nan():
    for name, row in functions.FUNCTIONS.items():
        assert row.full_name == name
        assert row.skips_nan == (name != row.name)
        plain = functions.FUNCTIONS[row.name]
        assert replace(functions.FUNCTIONS[f"nan{row.name}"], skips_nan=False) == plain


def test_the_oracle_has_the_same_functions():
    assert reference.REDUCES.keys() == {row.name for row in functions.FUNCTIONS.values()}
    assert reference.TRANSFORMS.keys() == functions.TRANSFORMS.keys()


def test_the_oracle_has_no_default_function(monkeypatch):
    monkeypatch.setitem(reference.REDUCES, "new", None)
    with pytest.raises(KeyError, match="no definition of new"):
        reference.reduce([1.0], [0], func="new")
