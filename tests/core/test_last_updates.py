"""Rows that are set: the last update of each destination, written once, on several threads."""

import numpy as np
import pytest

import gatherum
from sizes import chosen_from

ROWS, UPDATES, WIDTH = 3_000, 9_001, 131  # three pieces; rows that are no whole cache lines
THREADS = (1, 2, 3, 8, 16)

pytestmark = pytest.mark.usefixtures("settings_restored")


def _places(pattern, rng):
    if pattern == "one":
        return np.full(UPDATES, ROWS // 2)
    places = rng.integers(-ROWS, ROWS, UPDATES)
    return np.sort(places % ROWS) if pattern == "sorted" else places


def _in_a_loop(data, indices, updates):
    out = data.copy()
    for place, row in zip(indices.tolist(), updates, strict=True):
        out[place] = row
    return out


def _set_rows(data, indices, updates, expected, **options):
    """Set rows in a new result, and in place in arrays with and without gaps between rows."""
    with chosen_from({"streamed_bytes": 0}):
        for threads in THREADS:
            gatherum.set_num_threads(threads)
            plan = gatherum.plan("scatter_slices", data, indices, updates, **options)
            assert plan.algorithm == "last_updates"
            result = gatherum.scatter_slices(data, indices, updates, **options)
            assert result.tobytes() == expected.tobytes(), threads
            apart = np.zeros((ROWS, WIDTH + 9), data.dtype)
            for out in (data.copy(), apart[:, 4:-5]):
                out[:] = data
                gatherum.scatter_slices(out, indices, updates, **options, out=out)
                assert out.tobytes() == expected.tobytes(), threads
            assert not apart[:, :4].any()
            assert not apart[:, -5:].any()


@pytest.mark.parametrize("dtype", ["u1", "c16"])
@pytest.mark.parametrize("pattern", ["uniform", "one", "sorted"])
def test_the_last_update_wins(pattern, dtype):
    rng = np.random.default_rng(3)
    data = rng.integers(0, 99, (ROWS, WIDTH)).astype(dtype)
    updates = rng.integers(0, 99, (UPDATES, WIDTH)).astype(dtype)
    indices = _places(pattern, rng)
    _set_rows(data, indices, updates, _in_a_loop(data, indices, updates))
    with chosen_from({"streamed_bytes": 0}):
        backwards = gatherum.scatter_slices(data, indices[::-1], updates[::-1])
    assert backwards.tobytes() == _in_a_loop(data, indices[::-1], updates[::-1]).tobytes()


def test_dropped_updates_and_pairs():
    rng = np.random.default_rng(4)
    data, updates = rng.random((ROWS, WIDTH)), rng.random((UPDATES, WIDTH))
    indices = rng.integers(0, ROWS, UPDATES).astype("i2")
    indices[::7] = ROWS
    valid = indices < ROWS
    expected = _in_a_loop(data, indices[valid], updates[valid])
    _set_rows(data, indices, updates, expected, mode="drop")
    pairs = np.stack([indices // 50, indices % 50], 1)
    cubes = data.reshape(ROWS // 50, 50, WIDTH)
    with chosen_from({"streamed_bytes": 0}):
        plan = gatherum.plan("scatter_nd", cubes, pairs, updates, mode="drop")
        assert plan.algorithm == "last_updates"
        result = gatherum.scatter_nd(cubes, pairs, updates, mode="drop")
    assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("place", [0, UPDATES - 1])
def test_nothing_is_written_if_an_index_is_invalid(place):
    data, updates = np.zeros((ROWS, WIDTH)), np.ones((UPDATES, WIDTH))
    indices = np.arange(UPDATES) % ROWS
    indices[place] = ROWS
    with chosen_from({"streamed_bytes": 0}):
        for threads in THREADS:
            gatherum.set_num_threads(threads)
            for out in (data, None):
                with pytest.raises(IndexError, match=rf"index {ROWS} is .*\(indices\[{place}\]\)"):
                    gatherum.scatter_slices(data, indices, updates, out=out)
    assert not data.any()


@pytest.mark.parametrize(
    ("rows", "updates", "columns", "name"),
    [
        (16_384, 32_768, 32, "last_updates"),  # half of the updates are overwritten
        (16_385, 32_768, 32, "direct"),
        (16_384, 32_768, 31, "direct"),  # rows too short
        (1_024, 32_767, 32, "direct"),  # too few bytes
        (8_192, 8_192, 128, "last_updates"),
        (8_193, 8_192, 128, "direct"),  # more destinations than updates
        (8_192, 8_192, 127, "direct"),
    ],
)
def test_when_the_last_updates_are_found_first(rows, updates, columns, name):
    gatherum.set_num_threads(1)
    operands = ((rows, columns), "f4"), ((updates,), "i8"), ((updates, columns), "f4")
    assert gatherum.plan("scatter_slices", *operands).algorithm == name
