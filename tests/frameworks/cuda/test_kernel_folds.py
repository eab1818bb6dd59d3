"""Folds by the CUDA kernels on this processor: every reduction, and runs of every length."""

import numpy as np
import pytest
from shim.device import AT_ONCE, COMPILER, NO_COMPILER, ShimDevice
from shim.functions import ShimFunctions
from shim.values import RNG, values

import gatherum
from gatherum import reference
from gatherum._model.reductions import FOLDS
from gatherum.cuda import folds, launch_sizes, radix_sort, sorted_updates
from strategies import REDUCTIONS_OF, same_bits

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER),
    pytest.mark.usefixtures("several_launches"),
]
slow = pytest.mark.slow  # compiles each variant of a kernel, a third of a second each


@pytest.fixture
def shim():
    return ShimFunctions()


def runs(*lengths):
    """Return shuffled indices with the given counts."""
    indices = np.repeat(np.arange(len(lengths)), lengths)
    RNG.shuffle(indices)
    return indices


def spread(*shape):
    """Return numbers of many magnitudes, whose sums depend on the order."""
    return (RNG.standard_normal(shape) * 10.0 ** RNG.integers(-8, 8, shape)).astype("f4")


SORTS = {  # by the most updates that are sorted in a block and by launches
    (0, 0): ["keys"],
    (0, 1000): ["keys", "sort_count", "sort_offsets", "sort_move"],
    (4096, 1000): ["sorted_keys"],
}


@pytest.mark.parametrize("most", SORTS)
def test_a_sum_is_a_left_fold_in_row_major_order(shim, most, monkeypatch):
    monkeypatch.setattr(sorted_updates, "MOST_IN_BLOCK", most[0])
    monkeypatch.setattr(radix_sort, "MOST_PAIRS", most[1])
    indices = runs(0, 1, 5, 40, 700)
    updates = spread(indices.size)
    data = np.full(5, 0.1, np.float32)
    result = shim.scatter_elements(data, indices, updates, reduction="add", mode="drop")
    expected = reference.scatter_elements(data, indices, updates, reduction="add", mode="drop")
    assert same_bits(result, expected)
    backwards = shim.scatter_elements(
        data, indices[::-1].copy(), updates[::-1].copy(), reduction="add", mode="drop"
    )
    assert not same_bits(result, backwards)  # so the order matters here
    assert shim.last.names() == ["gather", *SORTS[most], "fold", "fold_long", "fold_long"]
    assert shim.last.reads == 0


def folded_without(left_out, indices, row):
    """Return the destinations that are not folded if some launches are skipped."""

    class Partial(ShimDevice):
        def launch(self, kernel, grid, block, arguments):
            if dict(kernel.macros).get("GROUP_THREADS", kernel.name) != left_out:
                super().launch(kernel, grid, block, arguments)

    data, updates = np.zeros((indices.max() + 1, *row), "f4"), spread(indices.size, *row)
    options = {"reduction": "add", "mode": "drop"}
    result = ShimFunctions(Partial).scatter_slices(data, indices, updates, **options)
    expected = gatherum.scatter_slices(data, indices, updates, **options)
    missed = [n for n in range(len(data)) if result[n].tobytes() != expected[n].tobytes()]
    assert same_bits(result[missed], data[missed])  # not partially folded either
    return missed


def test_a_thread_a_warp_or_a_block_folds_a_run_according_to_its_length():
    few, many = folds.LONGEST_ITEM_SEGMENT, folds.LONGEST_WARP_SEGMENT
    indices = runs(0, 1, few, few + 1, many, many + 1, 2 * many)
    assert folded_without("fold", indices, ()) == [1, 2]
    assert folded_without("32", indices, ()) == [3, 4]
    assert folded_without("128", indices, ()) == [5, 6]
    for all_of_them, nothing_left in ((few + 1, "32"), (many + 1, "128")):
        assert folded_without("", runs(all_of_them), ()) == []
        assert folded_without(nothing_left, runs(all_of_them), ()) == [0]
        assert folded_without(nothing_left, runs(all_of_them - 1), ()) == []


@slow
def test_rows_of_32_parts_are_folded_by_threads():
    few, many = folds.LONGEST_THREAD_SEGMENT, folds.LONGEST_WARP_SEGMENT
    indices = runs(0, 1, few + 1, many, many + 1)
    for items, by_thread, by_warp in ((31 * 4, [1], [2, 3]), (32 * 4, [1, 2, 3], [])):
        assert folded_without("fold", indices, (items,)) == by_thread
        assert folded_without("32", indices, (items,)) == by_warp
        assert folded_without("256", indices, (items,)) == [4]


# Runs of every length: none, one, a few, as many as a thread or a warp folds and one more, more
# than tiles hold; and rows, which are folded several items at a time.
SHAPES = [((0, 1, 2, 16, 17, 200, 512, 513, 3000), ()), ((0, 1, 2, 17, 60, 530), (17,)),
          ((1, 3, 17, 100), (16,))]  # fmt: skip


@slow
@pytest.mark.parametrize("include_self", [True, False], ids=["with self", "without"])
@pytest.mark.parametrize(
    ("reduction", "dtype"),
    [(r, d) for r in FOLDS for d in REDUCTIONS_OF[r]],
    ids=str,
)
def test_every_fold(shim, reduction, dtype, include_self):
    options = {"reduction": reduction, "include_self": include_self}
    for lengths, row in SHAPES:
        indices = runs(*lengths)
        data = values((len(lengths), *row), dtype)
        updates = values((indices.size, *row), dtype)
        with np.errstate(all="ignore"):
            result = shim.scatter_slices(data, indices, updates, **options)
        assert same_bits(result, gatherum.scatter_slices(data, indices, updates, **options))


@slow
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "c8"])
@pytest.mark.parametrize("reduction", ["add", "mul"])
def test_a_single_update_keeps_its_bits_and_a_fold_makes_nan_canonical(shim, dtype, reduction):
    nan = np.full(3 * np.dtype(dtype).itemsize, 0xFF, np.uint8).view(dtype)
    options = {"reduction": reduction, "include_self": False}
    result = shim.scatter_elements(np.zeros(3, dtype), np.array([0, 2, 2]), nan, **options)
    assert result[:1].tobytes() == nan[:1].tobytes()
    assert result[2:].tobytes() != nan[:1].tobytes()
    expected = gatherum.scatter_elements(np.zeros(3, dtype), np.array([0, 2, 2]), nan, **options)
    assert same_bits(result, expected)


@slow
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
@pytest.mark.parametrize("reduction", ["max", "min"])
def test_an_extreme_of_zeros_infinities_and_nan_is_the_definitions(shim, dtype, reduction):
    nan = np.full(np.dtype(dtype).itemsize, 0xFF, np.uint8).view(dtype)
    numbers = np.concatenate([np.array([0.0, -0.0, 1.0, np.inf, -np.inf], dtype), nan])
    data, updates, indices = np.repeat(numbers, 6), np.tile(numbers, 6), np.arange(36)
    result = shim.scatter_elements(data, indices, updates, reduction=reduction)
    expected = gatherum.scatter_elements(data, indices, updates, reduction=reduction)
    assert result.tobytes() == expected.tobytes()


@slow
@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
def test_any_byte_but_0_is_true(shim, reduction):
    numbers = np.array([0, 1, 2, 255], np.uint8)
    data, updates = (repeated(numbers, 4).view(bool) for repeated in (np.repeat, np.tile))
    result = shim.scatter_elements(data, np.arange(16), updates, reduction=reduction)
    expected = gatherum.scatter_elements(data, np.arange(16), updates, reduction=reduction)
    assert result.tobytes() == expected.tobytes()


@slow
@pytest.mark.parametrize(
    ("few", "many"),
    [(folds.LONGEST_THREAD_SEGMENT, folds.LONGEST_WARP_SEGMENT), (7, 30), (20, 500)],
)
@pytest.mark.parametrize("row", [(), (3,), (40,), (5, 4), (1300,)], ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f2", "c16"])
def test_long_runs_of_rows(shim, dtype, row, few, many, monkeypatch):
    monkeypatch.setattr(folds, "LONGEST_THREAD_SEGMENT", few)
    monkeypatch.setattr(folds, "LONGEST_WARP_SEGMENT", many)
    data, indices = values((4, *row), dtype), runs(40, 8, 90, 12) - 4
    updates = values((150, *row), dtype)
    if len(row) > 1:
        updates = np.moveaxis(values((*row, 150), dtype), -1, 0)
    options = {"reduction": "mean", "include_self": False}
    result = shim.scatter_slices(data, indices, updates, **options)
    assert same_bits(result, gatherum.scatter_slices(data, indices, updates, **options))


@slow
def test_rows_of_which_a_warps_tile_holds_one():
    """Sums are as wide as possible here: eight bytes for one of the update's."""
    indices, row = runs(3, 17, 40), (31 * 16,)
    data, updates = values((3, *row), "i1"), values((indices.size, *row), "i1")
    shim = ShimFunctions()
    result = shim.scatter_slices(data, indices, updates, reduction="mean")
    assert same_bits(result, gatherum.scatter_slices(data, indices, updates, reduction="mean"))
    assert shim.last.names()[-2:] == ["fold", "fold_long"]


@slow
def test_groups_take_more_runs_where_the_grid_is_small(shim, monkeypatch):
    monkeypatch.setattr(launch_sizes, "BLOCKS_PER_PROCESSOR", 1)
    monkeypatch.setattr(folds, "LONGEST_THREAD_SEGMENT", 2)
    monkeypatch.setattr(folds, "LONGEST_WARP_SEGMENT", 5)
    indices = runs(*RNG.integers(0, 8, 800))
    data, updates = np.zeros(800, "f4"), spread(indices.size)
    result = shim.scatter_slices(data, indices, updates, reduction="add")
    assert same_bits(result, gatherum.scatter_slices(data, indices, updates, reduction="add"))


@slow
@pytest.mark.parametrize(("few", "many"), [(2, 3), (2, 40), (3, 31), (16, 32), (40, 512)])
def test_long_runs_wherever_they_begin(shim, few, many, monkeypatch):
    monkeypatch.setattr(folds, "LONGEST_THREAD_SEGMENT", few)
    monkeypatch.setattr(folds, "LONGEST_WARP_SEGMENT", many)
    for seed in range(2 if AT_ONCE else 8):  # real threads wait long for each other
        rng = np.random.default_rng(seed)
        lengths = [0, 1, few, few + 1, 2 * few, many, many + 1, 2 * many, 520]
        indices = np.repeat(np.arange(9), rng.choice(lengths, 9))
        if seed % 2:
            rng.shuffle(indices)
        updates = rng.standard_normal((indices.size, 2))
        data = np.zeros((8, 2))  # destination 8 does not exist
        for include_self in (True, False):
            options = {"reduction": "add", "include_self": include_self, "mode": "drop"}
            result = shim.scatter_slices(data, indices, updates, **options)
            assert same_bits(result, gatherum.scatter_slices(data, indices, updates, **options))


@pytest.mark.parametrize("candidates", [1, 3, 128])
def test_a_block_tests_any_number_of_candidates(shim, candidates, monkeypatch):
    monkeypatch.setattr(
        folds, "_candidates_per_group", lambda _, groups, most: min(candidates, most)
    )
    indices = runs(600, 0, 3000, 520, 1)
    data, updates = np.zeros(5, "f4"), spread(indices.size)
    result = shim.scatter_slices(data, indices, updates, reduction="add")
    assert same_bits(result, gatherum.scatter_slices(data, indices, updates, reduction="add"))


@pytest.mark.parametrize("items", [5, 8, 20])
def test_stretches_of_the_longest_runs_are_short(shim, items, monkeypatch):
    monkeypatch.setattr(folds, "HUGE_SEGMENT", 1200)
    indices = runs(1199, 2, 1200, 1201, 3000, 513)
    data, updates = np.ones((6, items), "f4"), spread(indices.size, items)
    options = {"reduction": "add", "mode": "drop"}
    result = shim.scatter_slices(data, indices, updates, **options)
    assert same_bits(result, gatherum.scatter_slices(data, indices, updates, **options))
    assert shim.last.names()[-4:] == ["fold", "fold_long", "fold_long", "fold_long"]


def test_candidates_are_spread_over_all_processors():
    for candidates, expected in ((1, 1), (2048, 1), (8192, 4), (1 << 24, 128)):
        assert folds._candidates_per_group(candidates, 132, 128) == expected


ATOMIC = [pytest.param("i8", "add", id="add of i8")]
ATOMIC += [
    pytest.param(dtype, reduction, marks=slow)
    for dtype in ("i4", "u4", "i8", "u8")
    for reduction in ("add", "max", "min")
    if (dtype, reduction) != ("i8", "add")
]


@pytest.mark.parametrize(("dtype", "reduction"), ATOMIC)
def test_integers_fold_into_few_destinations_in_shared_memory(shim, reduction, dtype, monkeypatch):
    monkeypatch.setattr(folds, "TABLE_UPDATES_PER_ITEM", 2)
    monkeypatch.setattr(folds, "TABLE_UPDATES_PER_BLOCK", 64)
    options, limits = {"reduction": reduction, "mode": "drop"}, np.iinfo(dtype)
    for shape, batch_dims in (((5,), 0), ((3, 4, 2), 1), ((1, 2, 3), 2)):
        data = RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        indices = RNG.integers(-6, 7, (*shape[:batch_dims], 700, 1))
        updates = RNG.integers(limits.min, limits.max, (*indices.shape[:-1],
                               *shape[batch_dims + 1 :]), dtype, endpoint=True)  # fmt: skip
        updates[..., ::3] = np.array(-2).astype(dtype)
        call = data, indices, updates
        result = shim.scatter_nd(*call, batch_dims=batch_dims, **options)
        assert shim.last.names() == ["gather", "fold_table"]
        assert same_bits(result, gatherum.scatter_nd(*call, batch_dims=batch_dims, **options))
    data = np.zeros(folds.TABLE_BYTES, dtype)  # too many destinations
    call = data, RNG.integers(0, folds.TABLE_BYTES, 2 * folds.TABLE_BYTES), data[:1]
    shim.scatter_slices(*call[:2], np.broadcast_to(call[2], call[1].shape), **options)
    assert shim.last.names() == ["gather", "fold_atomic"]


@slow
@pytest.mark.parametrize("dtype", ["i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("reduction", ["add", "max", "min"])
def test_integers_fold_where_they_lie(shim, reduction, dtype):
    data, indices, updates = (
        values((5, 2), dtype),
        RNG.integers(-6, 7, 300),
        values((300, 2), dtype),
    )
    options = {"reduction": reduction, "mode": "drop"}
    result = shim.scatter_slices(data, indices, updates, **options)
    assert shim.last.names() == ["gather", "fold_atomic"]
    assert same_bits(result, gatherum.scatter_slices(data, indices, updates, **options))
