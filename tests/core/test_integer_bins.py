"""Integers folded into few destinations: every thread folds a separate piece of the updates."""

import numpy as np
import pytest

import gatherum
from canaries import guarded_copy, strays
from gatherum import reference

INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
FOLDS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
N = 400_001  # above 2^18 updates, and not divisible by a number of threads


def _case(dtype, bins, n=N, seed=3):
    rng = np.random.default_rng(seed)
    info = np.iinfo(dtype)
    data, updates = (
        rng.integers(info.min, info.max, size, dtype=dtype, endpoint=True) for size in (bins, n)
    )
    # The last destination has no update, and only the last update addresses the one before.
    indices = rng.integers(0, max(1, bins - 2), n)
    indices[-1] = bins - 2
    return data, indices, updates


def _folded(data, indices, updates, reduction):
    expected = data.copy()
    FOLDS[reduction].at(expected, indices, updates)
    return expected


@pytest.mark.parametrize("reduction", FOLDS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_in_bins(dtype, reduction, settings_restored):
    data, indices, updates = _case(dtype, 1003)
    expected = _folded(data, indices, updates, reduction)
    for threads in (1, 2, 3, 7):
        gatherum.set_num_threads(threads)
        assert np.array_equal(
            gatherum.scatter_nd(data, indices[:, None], updates, reduction=reduction), expected
        )
        out = guarded_copy(data)
        gatherum.scatter_nd(out, indices[:, None], updates, reduction=reduction, out=out)
        assert np.array_equal(out, expected)
        assert not strays(out)


@pytest.mark.parametrize("dtype", ["?", "f2", "f4", "i4", "u8"])
def test_ordered_folds_keep_the_order(dtype, settings_restored):
    """Floats; and integers if the first update replaces the element, or a count divides."""
    rng = np.random.default_rng(9)
    data, updates = (rng.integers(0, 100, size).astype(dtype) for size in (103, N))
    indices = rng.integers(0, 100, (N, 1))
    reductions = ["add", "max"] if dtype == "?" else ["add", "max", "mean"]
    for reduction in reductions:
        for include_self in (True, False):
            options, results = {"reduction": reduction, "include_self": include_self}, set()
            for threads in (1, 2, 3):
                gatherum.set_num_threads(threads)
                results.add(gatherum.scatter_nd(data, indices, updates, **options).tobytes())
            assert len(results) == 1
            few = (data, indices[:2000], updates[:2000])
            assert np.array_equal(
                gatherum.scatter_nd(*few, **options), reference.scatter_nd(*few, **options)
            )


def test_other_true_bytes_survive_where_nothing_is_folded(settings_restored):
    gatherum.set_num_threads(2)
    data = np.full(100, 7, "u1").view("?")
    indices = np.arange(N)[:, None] % 50
    result = gatherum.scatter_nd(data, indices, np.ones(N, "?"), reduction="add").view("u1")
    assert (result[:50] == 1).all()
    assert (result[50:] == 7).all()


@pytest.mark.parametrize("step", [1, -1, 3])
@pytest.mark.parametrize("bins", [2, 3, 66_000])
def test_bins_at_any_step(bins, step, settings_restored):
    """With two threads, each keeps at most N / 8 bins: 66,000 are too many."""
    gatherum.set_num_threads(2)
    data, indices, updates = _case("i4", bins)
    out = guarded_copy(np.repeat(data, abs(step)))
    view = out[::step]
    before = out.copy()
    gatherum.scatter_nd(view, indices[:, None], updates, reduction="add", out=view)
    expected = before
    np.add.at(expected[::step], indices, updates)
    assert np.array_equal(out, expected)
    assert not strays(out)


@pytest.mark.parametrize("threads", [2, 5])
def test_updates_of_several_axes(threads, settings_restored):
    """Pieces begin inside of rows of the indices, which are not contiguous."""
    gatherum.set_num_threads(threads)
    data = np.zeros((31, 7), "i8")
    rng = np.random.default_rng(5)
    indices = np.stack([rng.integers(-n, n, (600, 701)) for n in data.shape], axis=-1)
    updates = rng.integers(-9, 9, (1200, 1402))[::2, ::2]
    expected = data.copy()
    np.add.at(expected, (indices[..., 0], indices[..., 1]), updates)
    assert np.array_equal(gatherum.scatter_nd(data, indices, updates, reduction="add"), expected)
    turned = gatherum.scatter_nd(
        data, indices.swapaxes(0, 1), updates.swapaxes(0, 1), reduction="add"
    )
    assert np.array_equal(turned, expected)


@pytest.mark.parametrize("columns", [1, 2, 3, 100, 256, 257, 300])
@pytest.mark.parametrize("bins", [1, 2, 50])
def test_bins_of_every_column(bins, columns, settings_restored):
    """Each column of scatter_elements has separate bins, even on one thread."""
    rng = np.random.default_rng(11)
    rows = N // columns
    data = np.zeros((bins, columns), "i4")
    indices = rng.integers(-bins, bins, (rows, columns))
    updates = rng.integers(-9, 9, (rows, columns)).astype("i4")
    expected = data.copy()
    np.add.at(expected, (indices, np.arange(columns)), updates)
    for threads in (1, 2, 3):
        gatherum.set_num_threads(threads)
        result = gatherum.scatter_elements(data, indices, updates, axis=0, reduction="add")
        assert np.array_equal(result, expected)
        out = guarded_copy(data)
        gatherum.scatter_elements(out, indices, updates, axis=0, reduction="add", out=out)
        assert np.array_equal(out, expected)
        assert not strays(out)


@pytest.mark.parametrize("place", [0, N // 2, N - 1])
def test_a_bad_index_writes_nothing(place, settings_restored):
    gatherum.set_num_threads(2)
    data, indices, updates = _case("i8", 500)
    indices[place] = 500
    out = guarded_copy(data)
    with pytest.raises(IndexError, match=rf"500 .*{place}"):
        gatherum.scatter_nd(out, indices[:, None], updates, reduction="add", out=out)
    assert np.array_equal(out, data)
    assert not strays(out)
    result = gatherum.scatter_nd(data, indices[:, None], updates, reduction="add", mode="drop")
    good = indices < 500
    assert np.array_equal(result, _folded(data, indices[good], updates[good], "add"))
