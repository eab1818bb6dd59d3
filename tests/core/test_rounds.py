"""Updates sorted into lists in rounds, which many threads fold: the bits of one thread."""

import numpy as np
import pytest

import gatherum
from samples import every
from sizes import BY_EIGHTS, chosen_from

UPDATES = 140_003  # not a multiple of eight, nor of a block
THREADS = (8, 11)
# Pieces of 1024 updates: at least 7 rounds.
MANY_ROUNDS = {"many_updates": 1, "private_cache_bytes": 0}

pytestmark = pytest.mark.usefixtures("settings_restored")


def _rng():
    return np.random.default_rng(12)


def _values(count, dtype):
    values = _rng().standard_normal(count) * 50
    if dtype == "c8":
        return (values + 1j * values[::-1]).astype(dtype)
    return values.astype("i8").astype(dtype) if dtype[0] in "iu" else values.astype(dtype)


def _places(pattern, bins):
    places = _rng().integers(0, bins, UPDATES)
    if pattern == "Zipf":
        return _rng().zipf(1.3, UPDATES) % bins
    if pattern == "skewed":  # three heavy destinations, of which two have the same list
        heavy = np.array([7, 7 + bins // 64 * 32, 8])[_rng().integers(0, 3, UPDATES)]
        return np.where(_rng().random(UPDATES) < 0.4, heavy, places)
    if pattern == "one":
        return np.full(UPDATES, bins // 2)
    return np.sort(places) if pattern == "sorted" else places


def _on_threads(call, threads=THREADS):
    """Return the result of one thread, which must be the result of several threads."""
    gatherum.set_num_threads(1)
    expected = call()
    for count in threads:
        gatherum.set_num_threads(count)
        assert call().tobytes() == expected.tobytes(), count
    return expected


FOLDS = [
    ("f4", "add", True), ("f2", "add", True), ("f8", "add", True), ("c8", "add", True),
    ("f8", "mul", True), ("i2", "mean", True), ("f4", "mean", False), ("f8", "add", False),
    ("f4", "none", True), ("u1", "none", True), ("f4", "max", True), ("f4", "fsum", True),
    ("f4", "fmean", False), ("f8", "mean", True), ("f2", "mean", False), ("f2", "mul", True),
    ("i2", "none", True),
]  # fmt: skip
# The order does not matter for these. Rounds are used if there are too many destinations for an
# accumulator on each thread.
ANY_ORDER = ("max", "fsum", "fmean")


@pytest.mark.parametrize(
    ("pattern", "bins", "dtype", "reduction", "include_self"),
    every(
        7,
        [
            (pattern, bins, *fold)
            for pattern in ("uniform", "Zipf", "skewed", "one", "sorted")
            for bins in (257, 5_000, 120_000)
            for fold in FOLDS
            if bins == 5_000 or fold[1] not in ANY_ORDER
        ],
    ),
)
def test_the_bits_of_one_thread(pattern, bins, dtype, reduction, include_self):
    data, updates, indices = _values(bins, dtype), _values(UPDATES, dtype), _places(pattern, bins)
    options = {"reduction": reduction, "include_self": include_self}
    with chosen_from(MANY_ROUNDS):
        gatherum.set_num_threads(THREADS[0])
        plan = gatherum.plan("scatter_slices", data, indices, updates, **options)
        assert plan.algorithm == "in_rounds"
        expected = _on_threads(lambda: gatherum.scatter_slices(data, indices, updates, **options))
        for strided in (data.copy(), data.repeat(2)[::2]):
            gatherum.scatter_slices(strided, indices, updates, **options, out=strided)
            assert strided.tobytes() == expected.tobytes()


@pytest.mark.parametrize("index_dtype", ["u1", "i2", ">i4", "i4", "u8"])
def test_every_kind_of_index(index_dtype):
    bins = min(9_000, np.iinfo(index_dtype).max)
    updates, indices = _values(UPDATES, "f4"), _places("uniform", bins).astype(index_dtype)
    if np.dtype(index_dtype).kind == "i":
        indices[::997] -= bins
    with chosen_from(MANY_ROUNDS):
        result = _on_threads(
            lambda: gatherum.scatter_slices(np.zeros(bins, "f4"), indices, updates, reduction="add")
        )
    expected = np.zeros(bins, "f4")
    np.add.at(expected, indices.astype("i8"), updates)
    assert result.tobytes() == expected.tobytes()


def test_tuples_of_two_and_lines_of_updates():
    data, updates = _values((90, 100), "f8"), _values((7, 20_000), "f8")
    indices = _rng().integers(-90, 90, (7, 20_000, 2))
    with chosen_from(MANY_ROUNDS):
        _on_threads(lambda: gatherum.scatter_nd(data, indices, updates, reduction="add"))


@pytest.mark.parametrize("dtype", ["f4", "f2"])
@pytest.mark.parametrize("pattern", ["uniform", "skewed"])
def test_old_and_new_nan(dtype, pattern):
    data, updates = _values(9_000, dtype), _values(UPDATES, dtype)
    indices = _places(pattern, 9_000)
    updates[::5_000], payload = np.nan, np.array([-np.nan], dtype)
    for old in (1, np.nan, payload[0]):
        data[7] = old
        with chosen_from(MANY_ROUNDS):
            _on_threads(lambda: gatherum.scatter_slices(data, indices, updates, reduction="add"))


@pytest.mark.parametrize("place", [0, 70_001, UPDATES - 1])
def test_nothing_is_written_if_an_index_is_invalid(place):
    data, updates = _values(9_000, "f4"), _values(UPDATES, "f4")
    indices, out = _places("uniform", 9_000), _values(9_000, "f4")
    indices[place] = 9_000
    with chosen_from(MANY_ROUNDS):
        for threads in THREADS:
            gatherum.set_num_threads(threads)
            for target in (out, None):
                with pytest.raises(IndexError, match=rf"index 9000 is .*\(indices\[{place}\]\)"):
                    gatherum.scatter_slices(data, indices, updates, reduction="add", out=target)
            assert out.tobytes() == data.tobytes()
        dropped = {"reduction": "add", "mode": "drop"}
        _on_threads(lambda: gatherum.scatter_slices(data, indices, updates, **dropped))


@pytest.mark.parametrize(
    ("threads", "bins", "count", "name"),
    [
        (5, 262_144, 1 << 24, "divided_accumulators" if BY_EIGHTS else "serial_accumulators"),
        (6, 48, 2_796_203, "in_rounds"),
        (6, 48, 2_796_202, "serial_accumulators"),
        (8, 64, 1 << 21, "in_rounds"),
        (8, 63, 1 << 21, "serial_accumulators"),
        (8, 64, (1 << 21) - 1, "serial_accumulators"),
        (16, 128, 1 << 20, "in_rounds"),
        (16, 128, (1 << 20) - 1, "serial_accumulators"),
    ],
)
def test_when_threads_work_in_rounds(threads, bins, count, name):
    gatherum.set_num_threads(threads)
    operands = ((bins,), "f4"), ((count,), "i8"), ((count,), "f4")
    plan = gatherum.plan("scatter_slices", *operands, reduction="add")
    assert plan.algorithm == name
    if name == "in_rounds":
        assert f"in rounds, each of {threads} threads sorts" in plan.reason


def test_working_memory_does_not_grow_with_the_updates():
    gatherum.set_num_threads(16)
    plans = [
        gatherum.plan(
            "scatter_slices", ((10_000,), "f4"), ((n,), "i8"), ((n,), "f4"), reduction="add"
        )
        for n in (10**7, 10**9)
    ]
    assert [plan.algorithm for plan in plans] == ["in_rounds"] * 2
    assert plans[1].scratch <= 21 << 20
    assert plans[0].scratch <= 21 << 20


@pytest.mark.parametrize(
    ("bins", "name"), [(32 << 16, "in_rounds"), ((32 << 16) + 1, "divided_accumulators")]
)
def test_the_numbers_of_short_pairs_have_16_bits(bins, name):
    if not BY_EIGHTS and name != "in_rounds":
        name = "serial_accumulators"
    gatherum.set_num_threads(8)
    operands = ((bins,), "i2"), ((1 << 22,), "i8"), ((1 << 22,), "i2")
    assert gatherum.plan("scatter_slices", *operands).algorithm == name
    data, indices = np.zeros(bins, "i2"), _rng().integers(0, bins, 1 << 22)
    updates = _rng().integers(-32768, 32768, 1 << 22).astype("i2")
    _on_threads(lambda: gatherum.scatter_slices(data, indices, updates), (8,))
