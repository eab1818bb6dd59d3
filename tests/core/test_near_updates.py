"""Updates whose neighbours have neighbouring destinations, which several threads fold in ranges of
the destinations that each reads only some pieces of the updates: the bits of one thread.
"""

import numpy as np
import pytest

import gatherum
from gatherum import groups
from samples import every
from sizes import chosen_from

BINS, UPDATES = 120_000, 140_003  # not a multiple of eight, nor of a piece
SIZES = {"many_updates": 1, "private_cache_bytes": 0}

pytestmark = pytest.mark.usefixtures("settings_restored")


def _rng():
    return np.random.default_rng(5)


def _places(pattern, bins=BINS):
    places = np.sort(_rng().integers(0, bins, UPDATES))
    if pattern == "descending":
        return places[::-1].copy()
    if pattern == "drifting":
        return np.clip(places + _rng().integers(-500, 500, UPDATES), 0, bins - 1)
    if pattern == "outliers":
        places[_rng().integers(0, UPDATES, 5)] = _rng().integers(0, bins, 5)
    if pattern == "several runs":
        return np.concatenate([places[i::4] for i in range(4)])
    if pattern == "one heavy":
        return np.sort(np.where(_rng().random(UPDATES) < 0.4, bins // 3, places))
    if pattern == "as in order":  # in order only where a sample reads
        sampled = np.arange(UPDATES) % (UPDATES // 64) < 64
        return np.where(sampled, places, _rng().integers(0, bins, UPDATES))
    return places


PATTERNS = (
    "ascending", "descending", "drifting", "outliers", "several runs", "one heavy", "as in order",
)  # fmt: skip
FOLDS = [
    ("f4", "add", True), ("f8", "add", False), ("f2", "mean", True), ("c8", "mul", True),
    ("i4", "none", True), ("f4", "mean", False), ("f8", "fsum", True), ("u1", "none", True),
]  # fmt: skip


def _updates(dtype):
    return (_rng().standard_normal(UPDATES) * 50).astype("i4").astype(dtype)


def _on_threads(call, threads=(2, 3, 8, 11)):
    """Return the result of one thread, which must be the result of several threads."""
    gatherum.set_num_threads(1)
    expected = call()
    for count in threads:
        gatherum.set_num_threads(count)
        assert call().tobytes() == expected.tobytes(), count
    return expected


@pytest.mark.parametrize(
    ("pattern", "dtype", "reduction", "include_self"),
    every(5, [(pattern, *fold) for fold in FOLDS for pattern in PATTERNS]),
)
def test_the_bits_of_one_thread(pattern, dtype, reduction, include_self):
    options = {"reduction": reduction, "include_self": include_self}
    data, updates, indices = _updates(dtype)[:BINS], _updates(dtype), _places(pattern)
    updates = updates[: indices.size]
    with chosen_from(SIZES):
        expected = _on_threads(lambda: gatherum.scatter_slices(data, indices, updates, **options))
        out = data.copy()
        gatherum.scatter_slices(out, indices, updates, **options, out=out)
        assert out.tobytes() == expected.tobytes()


@pytest.mark.parametrize("func", ["nansum", "nanmean", "nanmax"])
def test_folds_that_skip_nan(func):
    values, labels = _updates("f4"), _places("drifting")
    values[::1_000] = np.nan
    with chosen_from(SIZES):
        _on_threads(lambda: groups.reduce(values, labels, func=func, size=BINS, fill_value=0))


@pytest.mark.parametrize("index_dtype", ["i4", ">i8", "u8", "i2"])
def test_every_kind_of_index(index_dtype):
    bins = min(BINS, np.iinfo(index_dtype).max)
    indices, updates = _places("ascending", bins).astype(index_dtype), _updates("f4")
    if np.dtype(index_dtype).kind == "i":
        indices[::997] -= bins
    with chosen_from(SIZES):
        result = _on_threads(
            lambda: gatherum.scatter_slices(np.zeros(bins, "f4"), indices, updates, reduction="add")
        )
    expected = np.zeros(bins, "f4")
    np.add.at(expected, indices.astype("i8"), updates)
    assert result.tobytes() == expected.tobytes()


def test_short_lines_of_tuples():
    data, updates = _updates("f8")[: 300 * 400].reshape(300, 400), _updates("f8")[:-2]
    places = np.divmod(np.resize(_places("ascending"), updates.size), 400)
    indices = np.stack(places, -1).reshape(-1, 3, 2)[:, ::-1]
    updates = updates.reshape(-1, 3)
    with chosen_from(SIZES):
        _on_threads(lambda: gatherum.scatter_nd(data, indices, updates, reduction="add"))


@pytest.mark.parametrize("invalid", [BINS, -BINS - 1, 1 << 40])
@pytest.mark.parametrize("place", [0, 70_001, UPDATES - 1])
def test_nothing_is_written_if_an_index_is_invalid(place, invalid):
    data, updates = _updates("f4")[:BINS], _updates("f4")
    indices, out = _places("ascending"), data.copy()
    indices[place] = invalid
    with chosen_from(SIZES):
        for threads in (3, 8):
            gatherum.set_num_threads(threads)
            for target in (out, None):
                with pytest.raises(
                    IndexError, match=rf"index {invalid} is .*\(indices\[{place}\]\)"
                ):
                    gatherum.scatter_slices(data, indices, updates, reduction="add", out=target)
            assert out.tobytes() == data.tobytes()
        for mode in ("drop", "clip", "wrap"):
            options = {"reduction": "add", "mode": mode}
            _on_threads(lambda o=options: gatherum.scatter_slices(data, indices, updates, **o))


def test_no_update_is_valid():
    data, updates = _updates("f4")[:BINS], _updates("f4")
    indices = np.full(UPDATES, BINS)
    with chosen_from(SIZES):
        result = _on_threads(
            lambda: gatherum.scatter_slices(data, indices, updates, reduction="add", mode="drop")
        )
    assert result.tobytes() == data.tobytes()
