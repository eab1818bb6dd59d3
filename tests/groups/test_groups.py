"""Updates sorted by destination: rows with accumulators, shared among threads."""

from itertools import product

import numpy as np
import pytest

import gatherum
from samples import every
from sizes import family

pytestmark = pytest.mark.slow

THREADS = [1, 2, 3, 7]
ROWS, UPDATES, COLUMNS = 60, 3600, 300  # two parts of a row, and enough work for several threads
DTYPES = ["f2", "bfloat16", "f4", "f8", "i2"]
HALVES = ["f2", "bfloat16"]


def _maximum(a, b):
    """Return the maximum of floats by the contract: a NaN wins, and -0 is less than +0."""
    if a.dtype.kind != "f":
        return np.maximum(a, b)
    a_is_larger = (a > b) | ((a == b) & (np.signbit(a) < np.signbit(b)))
    return np.where(np.isnan(a) | np.isnan(b), a.dtype.type(np.nan), np.where(a_is_larger, a, b))


def _minimum(a, b):
    if a.dtype.kind != "f":
        return np.minimum(a, b)
    a_is_less = (a < b) | ((a == b) & (np.signbit(a) > np.signbit(b)))
    return np.where(np.isnan(a) | np.isnan(b), a.dtype.type(np.nan), np.where(a_is_less, a, b))


STEPS = {"add": np.add, "mul": np.multiply, "max": _maximum, "min": _minimum, "mean": np.add}
# Folds that need accumulators: all without old values, all means, and half-precision sums and
# products.
FOLDS = [
    *((dtype, name, False) for dtype in DTYPES for name in STEPS),
    *((dtype, "mean", True) for dtype in DTYPES),
    *((dtype, name, True) for dtype in HALVES for name in ("add", "mul")),
]

SKEWS = {
    "uniform": lambda rng, n: rng.integers(0, n, UPDATES),
    "one destination": lambda rng, n: np.full(UPDATES, n // 2),
    "two, far apart": lambda rng, n: rng.integers(0, 2, UPDATES) * (n - 1),
    "half at the first": lambda rng, n: rng.integers(0, n, UPDATES) * rng.integers(0, 2, UPDATES),
    "Zipf": lambda rng, n: rng.zipf(1.3, UPDATES) % n,
    "reversed": lambda rng, n: np.linspace(n - 1, 0, UPDATES).astype(np.int64),
    "negative": lambda rng, n: rng.integers(-n, n, UPDATES),
}


def _dtype(name):
    if name != "bfloat16":
        return np.dtype(name)
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="install ml_dtypes for its bfloat16")
    return np.dtype(ml_dtypes.bfloat16)


def _folded(data, indices, updates, reduction, include_self):
    """Fold row after row, in order, by the contract."""
    wide = np.float32 if data.dtype.itemsize == 2 and data.dtype.kind != "i" else data.dtype
    wide = np.int64 if data.dtype.kind == "i" and reduction == "mean" else wide
    rows = data.astype(wide)
    count = np.full(len(data), int(include_self))
    for i, update in zip(indices, updates.astype(wide), strict=True):
        rows[i] = STEPS[reduction](rows[i], update) if count[i] else update
        count[i] += 1
    if reduction == "mean":
        touched = np.unique(indices % len(data))
        count = count[touched, None].astype(wide)
        divided = rows[touched] // count if data.dtype.kind == "i" else rows[touched] / count
        rows[touched] = divided
    return rows.astype(data.dtype)


def _numbers(rng, shape, name, reduction="add"):
    if name == "i2":
        odd = reduction == "mul"  # otherwise products soon become 0
        return rng.integers(-30_000, 30_000, shape).astype("i2") | np.int16(odd)
    numbers = rng.standard_normal(shape) * 3
    if reduction == "mul":
        numbers = 1 + numbers / 60  # the order matters, and nothing overflows
    if reduction in {"max", "min"}:
        chances = [0.49, 0.49, 0.005, 0.005, 0.01]
        special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan], shape, p=chances)
        numbers = np.where(rng.random(shape) < 0.4, special, numbers)
    return numbers.astype(_dtype(name))


def _check(data, indices, updates, *, mode="raise", threads=1, **more):
    """Compare with rows folded one after the other; their number is enough for several threads."""
    indices = np.asarray(indices)
    fold = {"reduction": "add", "include_self": True, **more}
    plan = gatherum.plan("scatter_nd", data, indices[:, None], updates, mode=mode, **fold)
    assert family(plan.algorithm) == "by_destination"
    assert updates.nbytes >= 2 << 20
    kept = indices < len(data)
    expected = _folded(data, indices[kept], updates[kept], **fold)
    gatherum.set_num_threads(threads)
    result = gatherum.scatter_nd(data, indices[:, None], updates, mode=mode, **fold)
    assert result.tobytes() == expected.tobytes()


@pytest.mark.usefixtures("settings_restored")
class TestSharedGroups:
    @pytest.mark.parametrize(
        ("destinations", "skew", "threads"),
        every(3, product([ROWS, UPDATES, 50_000], SKEWS, THREADS)),
    )
    def test_skew(self, threads, skew, destinations):
        """Updates are distributed by counting, or sorted if they are fewer than destinations."""
        rng = np.random.default_rng(3)
        data = np.zeros((destinations, COLUMNS), np.float16)
        data[:] = _numbers(rng, COLUMNS, "f2")
        indices = SKEWS[skew](rng, destinations)
        _check(data, indices, _numbers(rng, (UPDATES, COLUMNS), "f2"), threads=threads)

    @pytest.mark.parametrize(
        ("name", "reduction", "include_self", "threads"),
        every(3, [(*fold, threads) for fold in FOLDS for threads in THREADS]),
    )
    def test_types_and_reductions(self, threads, name, reduction, include_self):
        rng = np.random.default_rng(4)
        data, updates = (_numbers(rng, (n, COLUMNS), name, reduction) for n in (ROWS, UPDATES))
        options = {"reduction": reduction, "include_self": include_self}
        _check(data, rng.integers(0, ROWS, UPDATES), updates, threads=threads, **options)

    @pytest.mark.parametrize("columns", [1, 2, 7, 8, 9, 31, 32, 33, 255, 256, 257, 511, 512, 513])
    @pytest.mark.parametrize("destinations", [ROWS, 2000])
    def test_rows_of_every_length(self, columns, destinations):
        rng = np.random.default_rng(6)
        data, updates = (_numbers(rng, (n, columns), "f2") for n in (destinations, 90))
        indices = rng.integers(0, destinations, 90)
        result = gatherum.scatter_nd(data, indices[:, None], updates, reduction="mean")
        assert result.tobytes() == _folded(data, indices, updates, "mean", True).tobytes()

    @pytest.mark.parametrize("threads", THREADS)
    @pytest.mark.parametrize("destinations", [ROWS, 50_000])
    def test_dropped_updates_belong_to_no_group(self, threads, destinations):
        rng = np.random.default_rng(7)
        data = np.ones((destinations, COLUMNS), np.float16)
        updates = _numbers(rng, (UPDATES, COLUMNS), "f2")
        indices = rng.integers(0, 2 * destinations, UPDATES)
        _check(data, indices, updates, mode="drop", threads=threads)
        _check(data, np.full(UPDATES, destinations), updates, mode="drop", threads=threads)

    @pytest.mark.parametrize("threads", THREADS)
    def test_rows_that_are_strided_or_broadcast(self, threads):
        rng = np.random.default_rng(8)
        data = _numbers(rng, (COLUMNS, 2 * ROWS), "f2").T[::2]
        wide = _numbers(rng, (2 * UPDATES, COLUMNS), "f2")
        indices = rng.integers(0, ROWS, UPDATES)
        for updates in (wide[::2], wide[:UPDATES, ::-1], np.broadcast_to(wide[0], wide[::2].shape)):
            _check(data, indices, updates, threads=threads)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("units", [2, 12])
@pytest.mark.parametrize(
    ("n", "count", "order"),
    [
        (60_000, 7_000, "with a sort by comparison"),
        (40_000, 20_000, "with a counting sort over 40,000 destinations"),
    ],
)
def test_units_have_memory_of_their_own(settings_restored, n, count, order, units, threads):
    rng = np.random.default_rng(5)
    data, updates = rng.standard_normal((units, n)), rng.standard_normal((units, count))
    indices = rng.integers(0, n, updates.shape)
    gatherum.set_num_threads(threads)
    call, options = (data, indices, updates), {"axis": 1, "reduction": "mean"}
    plan = gatherum.plan("scatter_elements", *call, **options)
    assert plan.algorithm == "by_destination"
    assert plan.reason.endswith(order)
    gatherum.set_num_threads(1)
    alone = gatherum.plan("scatter_elements", *call, **options).scratch
    gatherum.set_num_threads(threads)
    # Two units are not enough work for several threads.
    assert plan.scratch == alone * (min(threads, units) if units > 2 else 1)
    expected = [
        _folded(row[:, None], at, new[:, None], "mean", True)[:, 0]
        for row, at, new in zip(data, indices, updates, strict=True)
    ]
    for _ in range(3):
        result = gatherum.scatter_elements(*call, **options)
        assert result.tobytes() == np.array(expected).tobytes()


def _with_nans(rng, shape, name):
    """Return numbers and NaNs of many payloads: a single one keeps its bits, sums are canonical."""
    numbers = _numbers(rng, shape, name)
    bits = numbers.view(f"u{numbers.itemsize}")
    nan = np.array(np.nan, numbers.dtype).view(bits.dtype)
    payloads = rng.integers(1, 60, shape).astype(bits.dtype)
    bits[...] = np.where(rng.random(shape) < 0.02, nan | payloads, bits)
    return numbers


WIDTHS = [15, 16, 17, 32, 63, 64, 65, 80, 128, 145, 255, 256, 257, 300]
SUMS = [("add", False), ("add", True), ("mean", True)]


@pytest.mark.parametrize(
    ("reduction", "include_self", "name", "columns"),
    every(5, [(*fold, *form) for fold in SUMS
              for form in product(["f2", "bfloat16", "f4", "f8"], WIDTHS)]),
)  # fmt: skip
def test_sums_in_registers_and_on_the_stack(columns, name, reduction, include_self):
    rng = np.random.default_rng(columns)
    data, updates = (_with_nans(rng, (n, columns), name) for n in (40, 150))
    # One destination has more than a long group, others have one update, and some have none.
    indices = np.concatenate([np.full(60, 7), rng.integers(0, 30, 60), np.arange(10, 40)])
    rng.shuffle(indices)
    options = {"reduction": reduction, "include_self": include_self}
    result = gatherum.scatter_nd(data, indices[:, None], updates, **options)
    expected = gatherum.reference.scatter_nd(data, indices[:, None], updates, **options)
    assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("threads", THREADS)
def test_updates_of_many_units_are_counted_out_one_unit_after_the_other(settings_restored, threads):
    rng = np.random.default_rng(9)
    data, updates = (_numbers(rng, (12, n, 200), "f2") for n in (30, 500))
    indices = rng.integers(0, 30, (12, 500, 1))
    gatherum.set_num_threads(threads)
    plan = gatherum.plan("scatter_nd", data, indices, updates, batch_dims=1, reduction="add")
    assert plan.algorithm == "by_destination"
    result = gatherum.scatter_nd(data, indices, updates, batch_dims=1, reduction="add")
    expected = [
        _folded(*unit, "add", True) for unit in zip(data, indices[..., 0], updates, strict=True)
    ]
    assert result.tobytes() == np.array(expected).tobytes()


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("destinations", [3, 700, 30_000])
@pytest.mark.parametrize("mode", ["raise", "drop"])
def test_updates_of_one_unit_are_counted_out_in_pieces(
    settings_restored, threads, destinations, mode
):
    rng = np.random.default_rng(11)
    updates = _numbers(rng, (70_001, 17), "f2")  # whole chunks of 16,384, and a rest
    data = _numbers(rng, (destinations, 17), "f2")
    indices = rng.integers(0, destinations + (mode == "drop"), len(updates))
    _check(data, indices, updates, mode=mode, threads=threads)
