"""The choice of the algorithm: on both sides of each condition, without running calls."""

import numpy as np
import pytest

import gatherum
from gatherum._system import native
from sizes import chosen_from


def _gather(shape, count, axis, dtype="f4"):
    """Return a gather_elements with `count` indices along the axis."""
    return "gather_elements", (shape, dtype), (_along(shape, count, axis), "i4"), axis


def _rows(width, count):
    """Return a gather of `count` rows of float32."""
    return "gather_nd", ((900, width), "f4"), ((count, 1), "i4"), 0


def _scatter(n, m, reduction, dtype="f4", width=()):
    """Return a scatter_nd of `m` items or rows into `n`."""
    operands = ((n, *width), dtype), ((m, 1), "i8"), ((m, *width), dtype)
    return "scatter_nd", *operands, reduction


def _elements(shape, count, axis, reduction, dtype="f4"):
    """Return a scatter_elements with `count` indices along the axis."""
    some = _along(shape, count, axis)
    return "scatter_elements", (shape, dtype), (some, "i4"), (some, dtype), axis, reduction


def _along(shape, count, axis):
    return (*shape[:axis], count, *shape[axis + 1 :])


NAMES = {
    "gather_nd": ("batch_dims",),
    "scatter_nd": ("reduction",),
    "scatter_slices": ("axis", "reduction"),
    "scatter_elements": ("axis", "reduction"),
}


@pytest.fixture(autouse=True)
def _one_thread():
    before = gatherum.get_num_threads()
    gatherum.set_num_threads(1)
    yield
    gatherum.set_num_threads(before)


def _chosen(op, *arguments):
    names = NAMES.get(op, ("axis",))
    named = dict(zip(names, arguments[-len(names) :], strict=True))
    return gatherum.plan(op, *arguments[: -len(names)], **named).algorithm


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (_gather((900, 900), 900, 1), "prefetched"),
        (_gather((900, 60_000), 1_875, 1), "prefetched"),
        (_gather((900, 60_000), 1_874, 1), "streamed"),  # too few of each line
        (_gather((900, 65_536), 65_536, 1), "prefetched"),
        (_gather((900, 65_537), 65_536, 1), "streamed"),  # too long a line of data
        (_gather((9, 300), 262_145, 1), "streamed"),  # too long a line of indices
        (_gather((30_000,), 30_000, 0), "direct"),  # no next line
        (_gather((900_000,), 900_000, 0), "direct"),
        (_gather((900, 900), 900, 0), "packed"),
        (_gather((900, 900), 450, 0), "packed"),
        (_gather((900, 900), 449, 0), "direct"),  # too few of each column
        (_gather((32_768, 100), 32_768, 0), "packed"),
        (_gather((32_769, 100), 32_769, 0), "streamed"),  # too long a column
        (_gather((128, 128), 128, 1), "prefetched"),
        (_gather((128, 127), 128, 1), "prefetched"),
        (_gather((128, 128), 127, 1), "direct"),  # too small
        (("gather_nd", ((900, 30, 30), "f4"), ((900, 900, 2), "i4"), 1), "direct"),  # pairs
        (_rows(64, 16_384), "streamed"),
        (_rows(64, 16_383), "direct"),  # still in cache
        (_rows(60, 99_999), "streamed"),  # no whole cache lines, but contiguous rows
        (_rows(65, 99_999), "direct"),  # no multiple of 16 bytes
        (_scatter(9_000, 262_144, "add"), "serial_accumulators"),
        (_scatter(9_000, 262_143, "add"), "direct"),  # too few
        (_scatter(9_000, 262_144, "none", "V4"), "serial_accumulators"),
        (_scatter(9_000, 262_144, "none", "V3"), "direct"),  # not the width of a value
        (_scatter(9, 5, "add"), "direct"),
        (_scatter(9, 5, "mean"), "serial_accumulators"),  # no other memory for the counts
        (
            _scatter(9, 5, "add", "f2"),
            "serial_accumulators",
        ),  # no other memory for values before rounding
        (_scatter(9, 5, "max", "f2"), "direct"),
        (_scatter(64, 5, "mean"), "serial_accumulators"),
        (_scatter(65, 5, "mean"), "by_destination"),  # too many accumulators, of 16 bytes
        (_scatter(2_100_000, 400_000, "add"), "partitioned"),
        (_scatter(2_000_000, 400_000, "add"), "direct"),
        (_scatter(2_000_000, 600_000, "add"), "serial_accumulators"),  # still in cache
        (_scatter(3_000_000, 375_000, "add"), "partitioned"),
        (_scatter(3_000_000, 374_999, "add"), "direct"),  # too few for these destinations
        (_scatter(2_100_000, 262_143, "add"), "direct"),
        (_scatter(1_100_000, 1_200_000, "add", "c8"), "partitioned"),
        (_scatter(1_100_000, 1_200_000, "add", "c16"), "serial_accumulators"),  # too wide
        (_scatter(4_000, 4_000, "mean", width=(8,)), "by_destination"),
        (_scatter(4_000, 4_000, "add", width=(8,)), "direct"),  # needs no accumulator
        (_scatter(32_768, 131_072, "add", width=(64,)), "by_destination"),  # not in cache
        (_scatter(32_767, 131_072, "add", width=(64,)), "direct"),
        (_scatter(32_768, 131_071, "add", width=(64,)), "direct"),  # too few of each destination
        (_scatter(80_000, 320_000, "add", width=(31,)), "direct"),  # too short
        (_scatter(32_768, 131_072, "none", width=(64,)), "last_updates"),
        (_scatter(9_000, 262_144, "max"), "serial_accumulators"),
        (_elements((900, 900), 900, 1, "add"), "batch_accumulators"),
        (_elements((900, 900), 900, 0, "add"), "batch_accumulators"),
        (_elements((900, 400), 99, 1, "add"), "direct"),  # too many destinations for the updates
        (_elements((900, 100), 64, 1, "add"), "batch_accumulators"),
        (_elements((900, 100), 63, 1, "add"), "direct"),  # too few updates
        (_elements((90, 90), 90, 1, "add"), "direct"),  # too small
        (
            _elements((90, 90), 90, 1, "mean"),
            "batch_accumulators",
        ),  # no other memory for the counts
        (_elements((2, 9_000), 300_000, 1, "add"), "batch_accumulators"),  # two units
        (_elements((2, 3_000_000), 400_000, 1, "add"), "direct"),
        (_elements((2, 1_048_576), 400_000, 1, "add"), "batch_accumulators"),
        (_elements((2, 1_048_577), 400_000, 1, "add"), "direct"),  # outgrow the cache
    ],
)
def test_on_one_thread(call, name):
    assert _chosen(*call) == name


@pytest.mark.parametrize(
    ("call", "names"),
    [
        # The order of folding integers does not matter; nine threads have too few updates each.
        (
            _scatter(31_250, 1_000_000, "add", "i8"),
            {1: "serial_accumulators", 8: "private_accumulators", 9: "serial_accumulators"},
        ),
        (_scatter(31_250, 1_000_000, "add", "f8"), {8: "serial_accumulators"}),
        (_scatter(256, 2_800_000, "add", "f8"), {5: "serial_accumulators", 6: "in_rounds"}),
        (_scatter(300_000, 2_800_000, "add", "f8"), {5: "divided_accumulators", 6: "in_rounds"}),
        (_scatter(31_250, 1_000_000, "max", "f8"), {8: "private_accumulators"}),
        (_scatter(1_000, 100_000, "add", width=(64,)), {1: "direct", 2: "by_column"}),
        (_scatter(1_000, 100_000, "add", width=(63,)), {2: "by_range"}),  # too few columns each
        (
            ("scatter_nd", ((63,), "f4"), ((100_000, 0), "i8"), ((100_000, 63), "f4"), "add"),
            {2: "direct"},  # one destination, and indices without components
        ),
        (
            ("scatter_slices", ((9, 99, 64), "f4"), ((900,), "i4"), ((9, 900, 64), "f4"), 1, "add"),
            {2: "direct"},  # many units, of wide rows
        ),
        (_elements((9_000, 900), 56, 1, "add"), {1: "direct", 4: "direct"}),  # many units
        (_elements((900, 9_000), 56, 0, "add"), {1: "direct", 4: "direct"}),  # columns are units
        (_scatter(4_000, 90_000, "mean", width=(64,)), {4: "by_destination"}),
    ],
)
def test_on_several_threads(call, names):
    for threads, name in names.items():
        gatherum.set_num_threads(threads)
        with chosen_from({"least_column_bytes": 128}):  # on any processor
            assert _chosen(*call) == name, threads


@pytest.mark.parametrize(
    ("destinations", "order"),
    [
        (4_000, "with a counting sort over 4,000 destinations"),
        (32_000, "with a counting sort over 32,000 destinations"),
        (32_001, "with a sort by comparison"),
    ],
)
def test_few_updates_are_sorted_by_comparison(destinations, order):
    plan = gatherum.plan(*_scatter(destinations, 4_000, "mean", width=(8,))[:4], reduction="mean")
    assert plan.algorithm == "by_destination"
    assert plan.reason.endswith(f"first grouped by destination, {order}")


def test_columns_that_lie_backwards_or_apart_are_not_packed():
    data, indices = np.zeros((900, 900), np.float32), np.zeros((900, 450), np.int32)
    for columns, name in (
        (data[:, :450], "packed"),
        (data[::-1, :450], "direct"),
        (data[:, ::2], "direct"),
    ):
        assert gatherum.plan("gather_elements", columns, indices, axis=0).algorithm == name


def test_rows_in_pieces_are_gathered_directly():
    data, indices = np.zeros((900, 900, 4), np.float32), np.zeros(900, np.int32)
    assert gatherum.plan("gather", data[:, :, 0], indices, axis=1).algorithm == "prefetched"
    assert gatherum.plan("gather", data[:, :, ::2], indices, axis=1).algorithm == "direct"


def test_a_size_of_one_makes_no_step_uneven():
    data, indices, updates = np.zeros((1, 9_500)), ((300_000, 2), "i4"), ((300_000,), "f8")
    out = data[:, :9_000]
    plan = gatherum.plan("scatter_nd", out, indices, updates, reduction="add", out=out)
    assert plan.algorithm == "serial_accumulators"


def test_columns_of_accumulators_fill_whole_cache_lines_even_where_one_outgrows_the_cache():
    shape, item = (400_000, 64), 16
    plan = gatherum.plan(
        "scatter_elements", (shape, "f4"), (shape, "i4"), (shape, "f4"), axis=0, reduction="mean"
    )
    assert plan.algorithm == "batch_accumulators"
    assert 16 * item <= plan.scratch / shape[0] < 17 * item


def test_the_reason_groups_the_digits_of_numbers():
    plan = gatherum.plan(
        "scatter_nd",
        ((9_000,), "f4"),
        ((3_000_000, 1), "i4"),
        ((3_000_000,), "f4"),
        reduction="add",
    )
    assert plan.reason == (
        "3,000,000 updates go to 9,000 destinations, which are few enough for an accumulator of "
        "4 bytes each"
    )


def test_destinations_at_uneven_steps_get_no_accumulators():
    data, indices, updates = (
        np.zeros((300, 300), np.float32),
        ((300_000, 2), "i4"),
        ((300_000,), "f4"),
    )
    for columns, name in ((300, "serial_accumulators"), (299, "direct")):
        out = data[:, :columns]
        plan = gatherum.plan("scatter_nd", out, indices, updates, reduction="add", out=out)
        assert plan.algorithm == name


@pytest.mark.parametrize(
    ("size", "dtype", "name"),
    [
        (8 << 20, "f4", "streamed"),
        ((8 << 20) + 1, "f4", "direct"),  # loads wait in the buffers of stores
        (4 << 20, "f8", "streamed"),
        ((4 << 20) + 1, "f8", "direct"),
        (4 << 20, "c16", "streamed"),  # for every size
        (8 << 20, "f2", "direct"),  # too small an item
    ],
)
def test_items_of_far_tables_are_not_written_past_the_cache(size, dtype, name):
    plan = gatherum.plan("gather", ((size,), dtype), ((3 << 20,), "i8"))
    assert plan.algorithm == name


def test_a_number_below_0_has_its_sign_before_its_digits():
    with chosen_from({"streamed_bytes": -100}):
        reason = gatherum.plan("gather", ((2_000, 64), "f4"), ((2_000,), "i8")).reason
    assert "at least -100" in reason


def test_an_unknown_threshold():
    with pytest.raises(ValueError, match="gatherum: an unknown threshold"):
        native.set_thresholds({"many": 1})
