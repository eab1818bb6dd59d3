"""Updates put in order of their destination: rows with accumulators, shared among threads."""

import ml_dtypes
import numpy as np
import pytest

import gatherum

THREADS = [1, 2, 3, 7]
ROWS, UPDATES, COLUMNS = 60, 3600, 300  # two parts of a row, and enough work for threads to pay
STEPS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum, "mean": np.add}
DTYPES = {"f2": "f2", "bf2": ml_dtypes.bfloat16, "f4": "f4", "f8": "f8", "i2": "i2"}

SKEWS = {
    "uniform": lambda rng, n: rng.integers(0, n, UPDATES),
    "one destination": lambda rng, n: np.full(UPDATES, n // 2),
    "two, far apart": lambda rng, n: rng.integers(0, 2, UPDATES) * (n - 1),
    "half at the first": lambda rng, n: rng.integers(0, n, UPDATES) * rng.integers(0, 2, UPDATES),
    "Zipf": lambda rng, n: rng.zipf(1.3, UPDATES) % n,
    "reversed": lambda rng, n: np.linspace(n - 1, 0, UPDATES).astype(np.int64),
    "negative": lambda rng, n: rng.integers(-n, n, UPDATES),
}


def _folded(data, indices, updates, reduction, include_self):
    """Fold row after row, in order, as the contract says."""
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


def _numbers(rng, shape, dtype):
    if dtype == "i2":
        return rng.integers(-30_000, 30_000, shape).astype("i2")
    return (rng.standard_normal(shape) * 3).astype(DTYPES[dtype])


def _check(data, indices, updates, reduction, include_self, threads):
    more = {"reduction": reduction, "include_self": include_self}
    plan = gatherum.plan("scatter_nd", data, indices[:, None], updates, **more)
    assert plan.algorithm == "grouped" and updates.nbytes >= 2 << 20
    expected = _folded(data, indices, updates, reduction, include_self)
    gatherum.set_num_threads(threads)
    found = gatherum.scatter_nd(data, indices[:, None], updates, **more)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.usefixtures("settings_restored")
class TestSharedGroups:
    @pytest.mark.parametrize("threads", THREADS)
    @pytest.mark.parametrize("skew", SKEWS)
    @pytest.mark.parametrize("destinations", [ROWS, UPDATES, 50_000])
    def test_skew(self, threads, skew, destinations):
        rng = np.random.default_rng(3)
        data = np.zeros((destinations, COLUMNS), np.float16)
        data[:] = _numbers(rng, COLUMNS, "f2")
        indices = SKEWS[skew](rng, destinations)
        _check(data, indices, _numbers(rng, (UPDATES, COLUMNS), "f2"), "add", True, threads)

    @pytest.mark.parametrize("threads", THREADS)
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize(
        ("reduction", "include_self"),
        [*((name, False) for name in STEPS), ("mean", True), ("add", True), ("mul", True)],
    )
    def test_types_and_reductions(self, threads, dtype, reduction, include_self):
        if include_self and reduction != "mean" and dtype not in {"f2", "bf2"}:
            include_self = False  # or it is folded in place
        rng = np.random.default_rng(4)
        data = _numbers(rng, (ROWS, COLUMNS), dtype)
        updates = _numbers(rng, (UPDATES, COLUMNS), dtype)
        if reduction == "mul":
            updates = np.sign(updates) * updates.dtype.type(1)
        _check(data, rng.integers(0, ROWS, UPDATES), updates, reduction, include_self, threads)

    @pytest.mark.parametrize("columns", [1, 2, 7, 8, 9, 31, 32, 33, 255, 256, 257, 511, 512, 513])
    def test_rows_of_every_length(self, columns):
        rng = np.random.default_rng(6)
        data, updates = (_numbers(rng, (n, columns), "f2") for n in (ROWS, 90))
        indices = rng.integers(0, ROWS, (90, 1))
        found = gatherum.scatter_nd(data, indices, updates, "mean")
        expected = _folded(data, indices[:, 0], updates, "mean", True)
        assert found.tobytes() == expected.tobytes()

    @pytest.mark.parametrize("threads", THREADS)
    @pytest.mark.parametrize("destinations", [ROWS, 50_000], ids=["counted", "sorted"])
    def test_dropped_updates_belong_to_no_group(self, threads, destinations):
        rng = np.random.default_rng(7)
        data = np.ones((destinations, COLUMNS), np.float16)
        updates = _numbers(rng, (UPDATES, COLUMNS), "f2")
        indices = rng.integers(0, 2 * destinations, UPDATES)
        gatherum.set_num_threads(threads)
        found = gatherum.scatter_nd(data, indices[:, None], updates, "add", mode="drop")
        kept = indices < destinations
        expected = _folded(data, indices[kept], updates[kept], "add", True)
        assert found.tobytes() == expected.tobytes()
        none = np.full((UPDATES, 1), destinations)
        found = gatherum.scatter_nd(data, none, updates, "mean", mode="drop", include_self=False)
        assert found.tobytes() == data.tobytes()

    @pytest.mark.parametrize("threads", THREADS)
    def test_rows_that_are_strided_or_broadcast(self, threads):
        rng = np.random.default_rng(8)
        data = _numbers(rng, (COLUMNS, 2 * ROWS), "f2").T[::2]
        wide = _numbers(rng, (2 * UPDATES, COLUMNS), "f2")
        indices = rng.integers(0, ROWS, UPDATES)
        gatherum.set_num_threads(threads)
        for updates in (wide[::2], wide[:UPDATES, ::-1], np.broadcast_to(wide[0], wide[::2].shape)):
            found = gatherum.scatter_nd(data, indices[:, None], updates, "add")
            assert found.tobytes() == _folded(data, indices, updates, "add", True).tobytes()
