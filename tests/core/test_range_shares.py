"""Updates shared by destination: every thread reads every index and folds its share."""

import numpy as np
import pytest

import gatherum
from sizes import BY_EIGHTS, chosen_from

BINS, UPDATES = 10_007, 300_003  # not a multiple of eight, nor of a block
THREADS = (2, 3, 7)

pytestmark = pytest.mark.usefixtures("settings_restored", "_few_are_many")


@pytest.fixture
def _few_are_many():
    with chosen_from({"many_updates": UPDATES // 16}):
        yield


def _rng():
    return np.random.default_rng(11)


def _folded(data, indices, updates, reduction="add"):
    """Apply one update after the other, as NumPy's `at` does."""
    out = data.copy()
    getattr(np, {"add": "add", "max": "maximum", "mul": "multiply"}[reduction]).at(
        out, indices, updates
    )
    return out


def _check(data, indices, updates, expected, **options):
    for threads in THREADS:
        gatherum.set_num_threads(threads)
        result = gatherum.scatter_slices(data, indices, updates, **options)
        assert result.tobytes() == expected.tobytes(), threads


@pytest.mark.parametrize("index_dtype", ["i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_every_update_is_found_once_and_in_order(index_dtype, dtype):
    rng = _rng()
    data = rng.standard_normal(BINS).astype(dtype)
    updates = rng.standard_normal(UPDATES).astype(dtype)
    indices = rng.integers(0, BINS, UPDATES).astype(index_dtype)
    _check(data, indices, updates, _folded(data, indices, updates), reduction="add")


@pytest.mark.parametrize("index_dtype", ["i4", "i8"])
@pytest.mark.parametrize("places", [slice(0, 1), slice(5_000, 5_300), slice(None, None, 997)])
def test_negative_indices_here_and_there(index_dtype, places):
    rng = _rng()
    data, updates = np.zeros(BINS, "f4"), rng.standard_normal(UPDATES).astype("f4")
    indices = rng.integers(0, BINS, UPDATES).astype(index_dtype)
    indices[places] -= BINS
    _check(data, indices, updates, _folded(data, indices, updates), reduction="add")


WRONG = (BINS, -BINS - 1, 2**31 - 1, -(2**31))


@pytest.mark.parametrize(
    ("index_dtype", "bad"),
    [(index_dtype, bad) for index_dtype in ("i4", "i8") for bad in WRONG]
    + [("i8", 2**32 + 5), ("i8", -(2**40))],
)
def test_no_thread_writes_for_invalid_indices(index_dtype, bad):
    rng = _rng()
    data, updates = rng.standard_normal(BINS), rng.standard_normal(UPDATES)
    indices = rng.integers(0, BINS, UPDATES).astype(index_dtype)
    places = [77, 78, 150_000, UPDATES - 1]
    valid = np.delete(np.arange(UPDATES), places)
    indices[places] = bad
    expected = _folded(data, indices[valid], updates[valid])
    _check(data, indices, updates, expected, reduction="add", mode="drop")
    for place in (77, 82):  # a single one, in either half of eight
        once = np.zeros_like(indices)
        once[place] = bad
        for threads in THREADS:
            gatherum.set_num_threads(threads)
            out = data.copy()
            with pytest.raises(IndexError, match=rf"index {bad} is .*\(indices\[{place}\]\)"):
                gatherum.scatter_slices(out, once, updates, reduction="add", out=out)
            assert out.tobytes() == data.tobytes()


@pytest.mark.parametrize("bins", [7, 8, 4_097, UPDATES])
def test_shares_that_do_not_divide_evenly(bins):
    """Every destination belongs to a thread, including the first and the last of each share."""
    rng = _rng()
    data, updates = np.zeros(bins), rng.standard_normal(UPDATES)
    indices = np.concatenate([np.arange(bins), rng.integers(0, bins, UPDATES - bins)])
    _check(data, indices, updates, _folded(data, indices, updates), reduction="add")


def test_means_count_each_update_once():
    rng = _rng()
    indices, updates = rng.integers(0, BINS, UPDATES), rng.integers(-9, 9, UPDATES).astype("f8")
    sums, counts = np.bincount(indices, updates, BINS), np.bincount(indices, minlength=BINS)
    expected = np.where(counts, sums / np.maximum(counts, 1), 5.0)
    options = {"reduction": "mean", "include_self": False}
    _check(np.full(BINS, 5.0), indices, updates, expected, **options)


@pytest.mark.parametrize(
    ("bins", "indices", "names"),
    [
        (
            8_192,
            "i4",
            {
                2: "serial_accumulators",
                3: "divided_accumulators" if BY_EIGHTS else "serial_accumulators",
            },
        ),
        (8_191, "i4", {3: "serial_accumulators"}),  # in the first-level cache
        (262_144, "i4", {2: "divided_accumulators" if BY_EIGHTS else "serial_accumulators"}),
        (262_143, "i4", {2: "serial_accumulators"}),  # in the caches of one processor core
        (262_144, "i2", {2: "serial_accumulators"}),
        (524_288, "u2", {2: "serial_accumulators", 3: "divided_accumulators"}),
        (524_287, "u2", {3: "serial_accumulators"}),
        (262_144, ">i4", {2: "serial_accumulators"}),
    ],
)
def test_when_updates_are_shared_out(bins, indices, names):
    count = 16 * (UPDATES // 16)
    operands = ((bins,), "f4"), ((count,), indices), ((count,), "f4")
    for threads, name in names.items():
        gatherum.set_num_threads(threads)
        plan = gatherum.plan("scatter_slices", *operands, reduction="add")
        assert plan.algorithm == name, threads


def test_strided_indices_are_compared_one_by_one():
    gatherum.set_num_threads(2)
    data, updates = np.zeros(BINS, "f4"), np.ones(UPDATES, "f4")
    indices = np.zeros((UPDATES, 2), "i4")
    plan = gatherum.plan("scatter_slices", data, indices[:, 0], updates, reduction="add")
    assert plan.algorithm == "serial_accumulators"


def test_fewer_updates_are_not_worth_another_thread():
    gatherum.set_num_threads(2)
    count = 16 * (UPDATES // 16) - 1
    operands = ((BINS,), "f4"), ((count,), "i4"), ((count,), "f4")
    assert (
        gatherum.plan("scatter_slices", *operands, reduction="add").algorithm
        == "serial_accumulators"
    )
