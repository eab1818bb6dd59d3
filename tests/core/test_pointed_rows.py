"""`aggregate` by a pointer in the core: the bits of the call with lists; all is checked.

The core makes the pointer of edges whose destinations ascend.
"""

import threading

import numpy as np
import pytest

import gatherum
from gatherum._edges.edge_lists import EdgeEnd, EdgeLoops
from gatherum._functions import edge_folds
from strategies import REDUCTIONS_OF, same_bits

GROUP = 4096  # kPointedPortion of kernels/calls.hpp
PIECE = 16384  # kPieceChunk of engine/schedule.hpp
FOLDS = [
    (name, dtype) for name, dtypes in REDUCTIONS_OF.items() if name != "none" for dtype in dtypes
]


@pytest.fixture(autouse=True)
def _few_edges_suffice(monkeypatch):
    monkeypatch.setattr(edge_folds, "_FEWEST_SORTED_EDGES", 0)


def drawn(dtype, row, counts, nodes=50):
    """Return rows, edge sources, a pointer with the given numbers of edges, and weights."""
    rng = np.random.default_rng(len(counts))
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=int)])
    edges = int(indptr[-1])

    def values(*shape):
        if dtype.kind in "fcV":
            result = rng.choice([0.0, -0.0, 1.5, -2.25, 3.0, np.inf, 1e-3, np.nan], shape)
        else:
            result = rng.integers(0, 100, shape)
        return result.astype(dtype)

    return values(nodes, *row), rng.integers(0, nodes, edges), indptr, values(edges)


def targets_of(indptr):
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def by_lists(data, sources, indptr, reduction, weights=None, **options):
    size = len(indptr) - 1
    targets = size - 1 - targets_of(indptr)  # these descend, so the core makes lists
    return gatherum.aggregate(data, sources, targets, size, reduction, weights, **options)[::-1]


def by_targets(data, sources, indptr, reduction, weights=None, **options):
    return gatherum.aggregate(
        data, sources, targets_of(indptr), len(indptr) - 1, reduction, weights, **options
    )


def by_pointer(data, sources, indptr, reduction, weights=None, **options):
    return gatherum.aggregate(
        data, sources, None, None, reduction, weights, indptr=indptr, **options
    )


@pytest.mark.parametrize(("reduction", "dtype"), FOLDS, ids=str)
@pytest.mark.parametrize("row", [(), (1,), (2,), (3,), (4,), (8,), (11,), (3, 7), (150,)], ids=str)
def test_rows_of_every_dtype_and_length(reduction, dtype, row):
    data, sources, indptr, weights = drawn(np.dtype(dtype), row, [3, 0, 1, 9, 0, 2, 1, 0])
    with np.errstate(all="ignore"):
        for scale in (None, weights, np.repeat(weights, 2)[::2], weights[:1]):
            expected = by_lists(data, sources, indptr, reduction, scale)
            for sorted_edges in by_pointer, by_targets:
                assert same_bits(sorted_edges(data, sources, indptr, reduction, scale), expected)


@pytest.mark.parametrize("reduction", ["add", "max"])
def test_rows_that_are_not_contiguous(reduction):
    data, sources, indptr, weights = drawn(np.dtype("f4"), (6, 8), [3, 0, 1, 9, 0, 2, 1, 0])
    for table in (
        data[:, ::2],
        data[:, :, ::-1],
        data[:, :, 2],
        data.transpose(0, 2, 1),
        data[::-2],
    ):
        of = sources % len(table)
        expected = by_lists(table, of, indptr, reduction, weights)
        assert same_bits(by_pointer(table, of, indptr, reduction, weights), expected)
        for apart in (np.empty((*expected.shape, 2), "f4")[..., 0], np.empty_like(expected)[::-1]):
            assert by_pointer(table, of, indptr, reduction, weights, out=apart) is apart
            assert same_bits(apart.copy(), expected)


SIZES = {
    "many empty": [0] * 9000 + [1] + [0] * 9000 + [2],
    "one each": [1] * 20000,
    "as a group": [GROUP, GROUP - 1, 1, GROUP + 1, 0, 1],
    "one large": [2, 60000, 0, 3],
    "all in the last": [0, 0, 50000],
    "no destination": [],
    "no edge": [0, 0, 0],
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("row", [(), (5,), (40,)], ids=str)
def test_the_same_bits_on_any_number_of_threads(settings_restored, name, row):
    data, sources, indptr, weights = drawn(np.dtype("f4"), row, SIZES[name])
    data = np.random.default_rng(1).standard_normal(data.shape).astype("f4")
    gatherum.set_num_threads(1)
    expected = by_lists(data, sources, indptr, "add", weights)
    for threads in (1, 2, 3, 4):
        gatherum.set_num_threads(threads)
        for sorted_edges in by_pointer, by_targets:
            assert same_bits(sorted_edges(data, sources, indptr, "add", weights), expected)


@pytest.mark.parametrize("mode", ["clip", "wrap", "drop"])
@pytest.mark.parametrize("negative", [True, False])
@pytest.mark.parametrize("row", [(), (3,), (40,)], ids=str)
def test_invalid_sources_in_every_mode(mode, negative, row):
    data, sources, indptr, weights = drawn(np.dtype("f8"), row, [3, 0, 1, 5000, 0, 2, 1, 0])
    sources = np.random.default_rng(2).integers(-80, 80, len(sources))
    options = {"mode": mode, "negative": negative}
    for scale in (None, weights, np.repeat(weights, 2)[::2], weights[:1]):
        for reduction in ("add", "min"):
            expected = by_lists(data, sources, indptr, reduction, scale, **options)
            for sorted_edges in by_pointer, by_targets:
                result = sorted_edges(data, sources, indptr, reduction, scale, **options)
                assert same_bits(result, expected)


@pytest.mark.parametrize("at", [0, 1, 255, 256, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE])
def test_a_pointer_that_falls_anywhere(at):
    indptr = np.arange(2 * PIECE + 1)
    data, sources = np.ones((4, 2)), np.zeros(2 * PIECE, np.int8)
    out = np.full((2 * PIECE, 2), 7.0)
    for wrong in (-1, -5, 2**62):
        changed = indptr.copy()
        changed[at] = wrong
        with pytest.raises(ValueError, match=r"^aggregate: `indptr` must "):
            by_pointer(data, sources, changed, "add", out=out)
        assert (out == 7).all()


@pytest.mark.parametrize("at", [0, 255, 256, 5000, 8999])
@pytest.mark.parametrize("sorted_edges", [by_pointer, by_targets])
def test_an_invalid_source_leaves_the_result_as_it_was(at, sorted_edges):
    data, sources, indptr, weights = drawn(np.dtype("f4"), (2,), [3, 0, 7000, 1997])
    sources[at] = 50
    out = np.full((4, 2), 7, "f4")
    for output in (None, out):
        with pytest.raises(IndexError) as caught:
            sorted_edges(data, sources, indptr, "add", weights, out=output)
        assert str(caught.value) == (
            f"aggregate: index 50 is out of bounds for axis 0 of size 50 (gather_indices[{at}])"
        )
    assert (out == 7).all()


def pointer_of(targets, size, mode="raise", negative=True):
    end = EdgeEnd("scatter_indices", targets, size)
    edges = EdgeLoops.of(targets, targets, (0,) * targets.ndim)
    pointer = edges.make_pointer(end, mode, negative)
    return None if pointer is None else pointer.tolist()


@pytest.mark.parametrize("dtype", ["i1", "u2", "<i4", ">i4", "i8", "u8"])
def test_a_pointer_is_made_of_destinations_that_ascend(dtype):
    targets = np.array([1, 1, 2, 4, 4, 4], dtype)
    assert pointer_of(targets, 6) == [0, 0, 2, 3, 3, 6, 6]
    assert pointer_of(np.repeat(targets, 2)[::2], 6) == [0, 0, 2, 3, 3, 6, 6]
    assert pointer_of(targets.reshape(2, 3), 6) == [0, 0, 2, 3, 3, 6, 6]
    assert pointer_of(targets[::-1], 6) is None
    assert pointer_of(targets, 4) is None
    assert pointer_of(targets, 4, "drop") is None
    assert pointer_of(targets, 4, "clip") == [0, 0, 2, 3, 6]
    assert pointer_of(targets, 4, "wrap") is None
    assert pointer_of(targets, 7) is None  # more destinations than edges
    assert pointer_of(np.zeros((3, 4), dtype)[:, :3], 1) is None  # two loops
    assert pointer_of(targets[:0], 0) is None


def test_a_pointer_is_made_of_negative_destinations():
    targets = np.array([0, -3, 1, -1])
    assert pointer_of(targets, 4) == [0, 1, 3, 3, 4]
    assert pointer_of(targets, 4, "clip") == [0, 1, 3, 3, 4]
    assert pointer_of(targets, 4, negative=False) is None
    assert pointer_of(np.array([0]), 0, "clip") is None


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("at", [1, 255, 256, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE - 1])
def test_destinations_that_fall_anywhere(settings_restored, threads, at):
    gatherum.set_num_threads(threads)
    size = 3 * PIECE // 4 + 2
    targets = np.repeat(np.arange(size - 2), 4)
    edges = len(targets)
    assert pointer_of(targets, size) == [*range(0, edges, 4), edges, edges, edges]
    targets[:at] += 2
    assert pointer_of(targets, size) is None
    data, sources = np.arange(8.0), np.arange(edges) % 8
    expected = np.bincount(targets, data[sources], size)
    assert same_bits(gatherum.aggregate(data, sources, targets, size, "add"), expected)


def test_an_invalid_destination_is_named():
    data, sources, indptr, _ = drawn(np.dtype("f4"), (2,), [3, 0, 7000, 1997])
    targets = targets_of(indptr)
    targets[-1] = 4
    with pytest.raises(IndexError) as caught:
        gatherum.aggregate(data, sources, targets, 4, "add")
    assert str(caught.value) == (
        "aggregate: index 4 is out of bounds for axis 0 of size 4 (scatter_indices[8999])"
    )


def test_the_result_shares_no_memory_with_the_pointer():
    indptr = np.array([0, 1, 2, 2])
    with pytest.raises(ValueError, match=r"^aggregate: `out` must not share memory with `indptr`"):
        by_pointer(np.array([1, 2]), [0, 1], indptr, "add", out=indptr[:3])


@pytest.mark.parametrize("changed", ["indptr", "sources", "targets"])
def test_indices_that_another_thread_changes(changed):
    data, sources, indptr, weights = drawn(np.dtype("f4"), (2,), [5] * 20000)
    targets = targets_of(indptr)
    target, first, wrong = {
        "indptr": (indptr, 20, 2**40),
        "sources": (sources, 3, 10**9),
        "targets": (targets, PIECE, 10**9),
    }[changed]
    kept, stop = target[first], threading.Event()

    def change():
        while not stop.is_set():
            target[first] = wrong
            target[first] = kept

    other = threading.Thread(target=change)
    other.start()
    try:
        for _ in range(50):
            try:
                if changed == "targets":
                    gatherum.aggregate(data, sources, targets, 20000, "add", weights)
                else:
                    by_pointer(data, sources, indptr, "add", weights)
            except (IndexError, ValueError) as error:
                assert str(error).startswith("aggregate: ")
    finally:
        stop.set()
        other.join()
