"""Functions over groups of Dask arrays equal the oracle bit for bit, for chunks of any size."""

from functools import partial

import numpy as np
import pytest

from group_calls import call, date_values, defined_pairs, outcome, same, values_of

da = pytest.importorskip("dask.array", reason="install dask to test its arrays")

import gatherum  # noqa: E402
from gatherum.groups import functions, reduce, transform  # noqa: E402
from gatherum.reference import groups as reference  # noqa: E402
from samples import diagonal, every  # noqa: E402
from strategies import DATA_DTYPES  # noqa: E402

NAMES = ("bool", "uint8", "int32", "bfloat16", "float32", "complex128", "datetime64[s]")
DTYPES = [dtype for dtype in DATA_DTYPES if dtype.isnative and dtype.name in NAMES]
ALL = (*functions.REDUCES, *functions.TRANSFORMS)
ROWS = functions.FUNCTIONS | functions.TRANSFORMS
SORTS = [name for name, row in ROWS.items() if row.sorts]
VALUES, GROUPS = np.arange(12.0).reshape(6, 2), np.array([0, 2, 2, 0, 1, 2])


@pytest.fixture(autouse=True)
def _in_this_thread():
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield


def run(module, values, groups, func, more):
    if func in functions.TRANSFORMS:
        return module.transform(values, groups, func, **more)
    if func.endswith("quantile"):
        more = more | {"q": 0.3}
    empty = 0 if values.dtype.kind in "mM" else 1  # integers other than 0 are not dates
    return module.reduce(values, groups, func=func, ddof=1, fill_value=empty, **more)


@pytest.mark.parametrize(("dtype", "func"), defined_pairs(DTYPES, ALL, 2))
@pytest.mark.filterwarnings("error")
def test_the_bits_of_the_oracle(dtype, func):
    rng = np.random.default_rng([*func.encode(), *dtype.name.encode()])
    for in_chunks in (False, True):
        shape, groups, more = call(rng)
        more["size"] = more["size"] or 4
        values = values_of(rng, dtype, shape)
        expected = outcome(run, reference, values, groups, func, more)
        lazy = da.from_array(values, chunks=tuple(max(1, n // 2) for n in shape))
        if func in SORTS:
            lazy = lazy.rechunk({more["axis"]: -1})
        entries = da.from_array(groups, chunks=3) if in_chunks else groups

        def reduced(values=lazy, groups=entries, more=more):
            result = run(gatherum.groups, values, groups, func, more)
            array = result.compute()
            assert (result.shape, result.dtype) == (array.shape, array.dtype)
            return array

        assert same(outcome(reduced), expected), more


@pytest.mark.parametrize(
    ("unit", "func"), diagonal(3, ["M8[D]", "M8", "m8[ns]"], functions.REDUCES)
)
def test_empty_groups_of_dates_are_not_a_time(func, unit):
    rng = np.random.default_rng(len(func))
    func_more = {"q": 0.5} if func.endswith("quantile") else {}
    values, groups = date_values(rng, unit, (9, 4)), rng.integers(0, 5, 9)
    more = func_more | ({"fill_value": -1} if "arg" in func else {})
    lazy = da.from_array(values, chunks=(9 if func in SORTS else 4, 3))
    expected = outcome(reference.reduce, values, groups, 7, func, **more)
    result = outcome(reduce, lazy, groups, 7, func, **more)
    assert same(result if isinstance(result, type) else result.compute(), expected)


def test_nothing_runs_before_it_is_computed():
    def refuse(block):
        raise AssertionError("computed")

    values = da.from_array(VALUES, chunks=2).map_blocks(refuse, dtype=float)
    for func in functions.REDUCES:
        of = values.rechunk({0: -1}) if func in SORTS else values
        more = {"q": 0.5} if func.endswith("quantile") else {}
        assert isinstance(reduce(of, GROUPS, 3, func, fill_value=0, **more), da.Array)
    for func in functions.TRANSFORMS:
        of = values.rechunk({0: -1}) if func in SORTS else values
        assert isinstance(transform(of, GROUPS, func, size=3), da.Array)


def test_on_a_cluster_of_threads():
    values, groups = da.from_array(VALUES, chunks=(1, 2)), da.from_array(GROUPS, chunks=2)
    result = transform(values, groups, "softmax", size=3).compute(scheduler="threads")
    assert result.tobytes() == transform(VALUES, GROUPS, "softmax").tobytes()


@pytest.mark.parametrize(
    ("more", "error_type", "message"),
    [
        ({}, TypeError,
         "groups.reduce: `size` must be given for arrays of Dask, because the values of `groups` "
         "are not known yet; write size=int(groups.max()) + 1"),
        ({"size": 3, "func": "max", "whole": True}, RuntimeError,
         "groups.reduce: `fill_value` must be given for arrays of Dask, and where JAX or torch "
         "traces a call, because it is not known there which groups are empty"),
        ({"size": 3, "func": "cumsum"}, ValueError,
         "groups.reduce: `func` must be a function that help(gatherum.groups.reduce) lists"),
        ({"size": 3, "axis": 2}, ValueError, "groups.reduce: `axis` must be in [-2, 2), got 2"),
        ({"size": 3, "short": True}, ValueError,
         "groups.reduce: `groups` must have shape (6,), or that of `values`, (6, 2), got (5,)"),
    ],
)  # fmt: skip
def test_reduce_checks_the_arguments_of_dask_arrays(more, error_type, message):
    values = VALUES.astype(int) if more.pop("whole", False) else VALUES
    groups = GROUPS[:5] if more.pop("short", False) else GROUPS
    with pytest.raises(error_type) as refusal:
        reduce(da.from_array(values, chunks=2), groups, **more)
    assert str(refusal.value).startswith(message)


def test_a_number_outside_the_range_of_a_dtype_raises_when_it_is_computed():
    values = np.where(VALUES == 5, 200, VALUES)
    lazy = reduce(da.from_array(values, chunks=2), GROUPS, 3, dtype="int8")
    with pytest.raises(ValueError, match=r"`dtype`, int8, got 200\.0 \(values\)"):
        lazy.compute()


def test_an_invalid_group_raises_when_it_is_computed():
    chunked = da.from_array(VALUES, chunks=2)
    for func in ("sum", "first", "var", "argmax", "nansum", "softmax"):
        for groups in (GROUPS, np.stack([GROUPS, GROUPS], 1)):
            at = "1" if groups.ndim == 1 else "1, 0"
            whole = func == "softmax"
            run = (
                partial(transform, func=func, size=2)
                if whole
                else partial(reduce, size=2, func=func)
            )
            lazy = run(chunked, groups) if whole else run(chunked, groups, fill_value=0)
            with pytest.raises(IndexError) as refusal:
                lazy.compute()
            name = "transform" if whole else "reduce"
            expected = f"groups.{name}: group 2 is not in [0, 2) (groups[{at}])"
            assert str(refusal.value) == expected


@pytest.mark.parametrize("func", every(5, ALL))
def test_chunks_may_be_empty(func):
    """Dask itself reverses and broadcasts such chunks incorrectly."""
    for shape, chunks in (((3, 2), ((2, 0, 1), (2,))), ((3, 1), ((0, 2, 1), (1, 0))),
                          ((1,), ((1, 0),)), ((0, 2), ((0, 0), (1, 1)))):  # fmt: skip
        values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        groups = np.arange(shape[0]) % 2
        expected = outcome(run, reference, values, groups, func, {"size": 2})
        if func in SORTS:
            lazy = da.from_array(values, chunks=-1).rechunk((shape[0], *chunks[1:]))
        else:
            lazy = da.from_array(values, chunks=-1).rechunk(chunks)
        for entries in (groups, da.from_array(groups, chunks=-1).rechunk((chunks[0],))):
            result = outcome(run, gatherum.groups, lazy, entries, func, {"size": 2})
            assert same(result if isinstance(result, type) else result.compute(), expected)


def test_a_sort_needs_all_positions_along_the_axis_in_one_chunk():
    lazy = da.from_array(VALUES, chunks=(2, 1))
    with pytest.raises(NotImplementedError) as caught:
        reduce(lazy, GROUPS, 3, "median")
    assert str(caught.value) == (
        "groups.reduce: 'median' of a Dask array needs all values of a group in one chunk; write "
        "values.rechunk({0: -1})"
    )
    result = reduce(lazy.rechunk({0: -1}), GROUPS, 3, "quantile", q=[0.5, 1])
    assert same(reduce(VALUES, GROUPS, 3, "quantile", q=[0.5, 1]), result.compute())


def test_weights_in_chunks():
    weights = np.arange(6.0)
    lazy = da.from_array(VALUES, chunks=2), GROUPS, 3
    for each in (weights, da.from_array(weights, chunks=4)):
        results = reduce(*lazy, ["sum", "nanmean", "std"], weights=each)
        for name, result in results.items():
            expected = reference.reduce(VALUES, GROUPS, 3, name, weights=weights)
            assert same(expected, result.compute())
