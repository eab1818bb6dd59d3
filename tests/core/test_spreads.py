"""Variances by the core's kernel of squared distances, against compositions of the operators."""

from ctypes import byref
from fractions import Fraction

import numpy as np
import pytest

import c_calls as c
import gatherum
from gatherum.groups import namespace
from gatherum.groups.grouping import Grouping
from sizes import chosen_from
from strategies import same_bits

SIZES = (
    {},
    {"small_call_bytes": 0, "many_updates": 1, "far_bytes": 0},
    {"small_call_bytes": 0, "many_updates": 0, "private_cache_bytes": 0, "shared_cache_bytes": 512},
)
N, GROUPS = 4_100, 60


def _usual(rng):
    return rng.standard_normal(N)


def _special(rng):
    values = rng.standard_normal(N)
    chosen = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-320, 1e300, -1e300, 65504, 6e-8])
    return np.where(rng.random(N) < 0.02, rng.choice(chosen, N), values)


def _wide(rng):
    """Return values whose exponents exceed the windows of exact sums."""
    return np.ldexp(rng.standard_normal(N), rng.integers(-1070, 1000, N))


def _equal(rng):
    return np.full(N, 0.1)


def _places(groups):
    return Grouping.of("reduce", "groups", groups, (GROUPS,), 0).destinations


def _both(monkeypatch, values, groups, **options):
    """Return the result with the kernel, which must run, and the result of the composition."""
    calls = []

    def squares(*arguments):
        calls.append(kernel(*arguments))
        return calls[-1]

    kernel = namespace.squares_and_counts
    monkeypatch.setattr(namespace, "squares_and_counts", squares)
    options.setdefault("size", GROUPS)
    results = gatherum.groups.reduce(values, groups, **options)
    assert len(calls) == 1
    assert calls[0] is not None
    monkeypatch.setattr(namespace, "squares_and_counts", lambda *_: None)
    composed = gatherum.groups.reduce(values, groups, **options)
    monkeypatch.setattr(namespace, "squares_and_counts", kernel)
    return results, composed


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # conversions of the largest values
@pytest.mark.parametrize("make", [_usual, _special, _wide, _equal])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "bfloat16"])
def test_the_kernel_has_the_bits_of_the_composition(dtype, make, monkeypatch, settings_restored):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    rng = np.random.default_rng(5)
    values = make(rng).astype(dtype)
    groups = rng.integers(0, GROUPS - 1, N)
    for threads in (1, 2, 3):
        gatherum.set_num_threads(threads)
        for sizes in SIZES:
            with chosen_from(sizes):
                for func in ("var", "std", "nanvar"):
                    one, other = _both(monkeypatch, values, groups, func=func, ddof=1)
                    assert same_bits(one, other)


LAYOUTS = {
    "int32": lambda values, groups: (values, groups.astype("i4")),
    "uint8": lambda values, groups: (values, groups.astype("u1")),
    "big endian": lambda values, groups: (values, groups.astype(">i8")),
    "strided values": lambda values, groups: (values.repeat(2)[::2], groups),
    "strided groups": lambda values, groups: (values, groups.repeat(3)[::3]),
    "backward": lambda values, groups: (values[::-1], groups),
    "one value": lambda values, groups: (np.broadcast_to(values[:1], values.shape), groups),
    "unaligned": lambda values, groups: (
        np.frombuffer(b"0" + values.tobytes(), values.dtype, offset=1), groups
    ),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_layouts(layout, dtype, monkeypatch, settings_restored):
    rng = np.random.default_rng(6)
    operands = LAYOUTS[layout](_usual(rng).astype(dtype), rng.integers(0, GROUPS, N))
    for threads in (1, 3):
        gatherum.set_num_threads(threads)
        for sizes in SIZES:
            with chosen_from(sizes):
                assert same_bits(*_both(monkeypatch, *operands, func="var"))


@pytest.mark.parametrize("index", ["i4", "i8", ">i8"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_threads_share_the_groups(dtype, index, monkeypatch, settings_restored):
    rng = np.random.default_rng(9)
    n, groups = 90_000, 2_000
    values = np.where(rng.random(n) < 0.01, np.nan, rng.standard_normal(n)).astype(dtype)
    entries = rng.integers(-9, groups, n).astype(index)
    for threads in (1, 3, 16):
        gatherum.set_num_threads(threads)
        with chosen_from({"many_updates": 1}):
            for options in ({"mode": "drop"}, {"negative": True}):
                options |= {"func": "var", "size": groups}
                assert same_bits(*_both(monkeypatch, values, entries, **options))


def test_exact_means_of_the_smallest_numbers(monkeypatch):
    """Quotients in float64 have more digits below the last one of float16 and float32."""
    rng = np.random.default_rng(10)
    for dtype, smallest in (("f2", 2.0**-24), ("f4", 2.0**-149)):
        for most in (2, 50, 2**11):
            values = (rng.integers(0, most, N) * smallest).astype(dtype)
            entries = rng.permutation(np.arange(N) % GROUPS)
            squares, counts = namespace.squares_and_counts(values, _places(entries), False)
            for group in range(GROUPS):
                chosen = values[entries == group].astype(float)
                total = int((chosen / smallest).sum())
                mean = float(Fraction(total, len(chosen))) * smallest
                total = 0.0
                for value in chosen:
                    total += (value - mean) ** 2
                assert (squares[group], counts[group]) == (total, len(chosen))


@pytest.mark.parametrize("mode", ["drop", "clip", "wrap"])
@pytest.mark.parametrize("negative", [False, True])
def test_modes(mode, negative, monkeypatch, settings_restored):
    rng = np.random.default_rng(7)
    values, groups = _usual(rng), rng.integers(-GROUPS - 9, GROUPS + 9, N)
    options = {"func": "var", "mode": mode, "negative": negative}
    for threads in (1, 3):
        gatherum.set_num_threads(threads)
        for sizes in SIZES:
            with chosen_from(sizes):
                assert same_bits(*_both(monkeypatch, values, groups, **options))


@pytest.mark.parametrize("threads", [1, 3])
def test_an_invalid_group_is_named(threads, settings_restored):
    gatherum.set_num_threads(threads)
    groups = np.zeros(N, int)
    groups[N - 3 :] = GROUPS, -1, GROUPS
    for sizes in SIZES:
        with chosen_from(sizes), pytest.raises(IndexError) as error:
            gatherum.groups.reduce(np.ones(N), groups, GROUPS, func="var")
        assert str(error.value) == (
            f"groups.reduce: group {GROUPS} is not in [0, {GROUPS}) (groups[{N - 3}])"
        )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # conversions of the largest values
@pytest.mark.parametrize(("shape", "axis"), [((70, 300), 0), ((90, 2), 0), ((3, 60, 5), 1)])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "bfloat16"])
def test_rows(dtype, shape, axis, monkeypatch, settings_restored):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    rng = np.random.default_rng(11)
    numbers = np.where(rng.random(shape) < 0.02, 0.0, rng.standard_normal(shape))
    holes = np.where(rng.random(shape) < 0.2, np.nan, numbers)
    special = np.resize(_special(rng), shape)
    groups = rng.integers(-1, 8, shape[axis])
    holes[(slice(None),) * axis + (groups == 3,)] = np.nan
    for threads in (1, 3):
        gatherum.set_num_threads(threads)
        for values in (numbers, holes, special):
            for func in ("var", "std", "nanvar"):
                options = {"axis": axis, "func": func, "ddof": 1, "mode": "drop", "size": 9}
                assert same_bits(*_both(monkeypatch, values.astype(dtype), groups, **options))


def test_calls_that_the_kernel_does_not_support():
    """Several units, and groups that are not few."""
    values, groups = np.random.default_rng(8).standard_normal((6, 4)), np.array([0, 1, 1, 0])
    result = gatherum.groups.reduce(values, groups, 3, func="var", axis=1)
    assert result.shape == (6, 3)
    assert np.isnan(gatherum.groups.reduce([1.0], [0], 10**6, func="var")[1:]).all()
    assert gatherum.groups.reduce(np.zeros(0), np.zeros(0, int), 0, func="var").shape == (0,)


def _status(core, read, plan, arrays, cut=None, name="gatherum_spreads"):
    """Call a C function. The operand `cut` is one byte too small."""
    operands, error, memory = c.Operands(), c.Error(), {}
    for operand, array in arrays.items():
        start, before, behind = c.memory_of(array)
        memory[operand] = c.Buffer(start, before, behind - (operand == cut))
    operands.indices, operands.updates = memory["indices"], memory["updates"]
    results = byref(memory["squares"]), byref(memory["counts"])
    status = getattr(core, name)(read(plan), byref(operands), *results, None, byref(error))
    return status, error.operand or b""


@c.NEEDS_LIBRARY
def test_the_c_function_checks_its_operands(core, read):
    values, groups, data = np.arange(1000.0), np.arange(1000) % 3, np.zeros(3)
    how = {"reduction": "fmean", "include_self": False, "negative": False}
    plan = gatherum.plan("scatter_slices", data, groups, values, **how)
    arrays = {
        "indices": groups, "updates": values, "squares": np.empty(3), "counts": np.empty(3, int)
    }  # fmt: skip
    assert _status(core, read, plan, arrays) == (c.OK, b"")
    assert arrays["counts"].tolist() == [334, 333, 333]
    assert arrays["squares"].tolist() == [values[i::3].var() * len(values[i::3]) for i in range(3)]
    values[1] = np.nan
    assert _status(core, read, plan, arrays, name="gatherum_spreads_skip_nan") == (c.OK, b"")
    assert arrays["counts"].tolist() == [334, 332, 333]
    for name in arrays:
        assert _status(core, read, plan, arrays, name) == (c.TOO_SMALL, name.encode())
    for name in ("indices", "updates"):
        for written in ("squares", "counts"):
            shared = arrays | {written: arrays[name]}
            assert _status(core, read, plan, shared) == (c.INVALID_CALL, name.encode())
    shared = arrays | {"squares": arrays["counts"]}
    assert _status(core, read, plan, shared) == (c.INVALID_CALL, b"counts")
    for changed in ({"include_self": True}, {"reduction": "add"}):
        other = gatherum.plan("scatter_slices", data, groups, values, **how | changed)
        assert _status(core, read, other, arrays)[0] == c.INVALID_PROGRAM
    groups[1] = 7
    assert _status(core, read, plan, arrays)[0] == c.INVALID_INDEX
