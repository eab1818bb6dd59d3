"""One digest for many chunkings of all operands, on a cluster of processes."""

import dask.array as da
import numpy as np
import pytest

import gatherum
from clusters import STRATEGIES, WARNINGS, digest, session

pytestmark = pytest.mark.filterwarnings(*WARNINGS)
RNG = np.random.default_rng(21)
ROWS, WIDTH, MANY = 900, 24, 3000
TABLE = RNG.standard_normal((ROWS, WIDTH))
INDICES = RNG.zipf(1.2, (MANY // 50, 50)) % ROWS
UPDATES = RNG.standard_normal((*INDICES.shape, WIDTH))
# Calls, each with its dtype and reduction.
CALLS = {
    "gather": ("gather", "f4", None),
    "add of float16": ("scatter_slices", "f2", "add"),
    "add of float32": ("scatter_slices", "f4", "add"),
    "mean": ("scatter_slices", "f4", "mean"),
    "the last wins": ("scatter_slices", "f4", "none"),
    "max": ("scatter_slices", "f4", "max"),
}


def cut(array, rng):
    """Return a Dask array in random chunks, some of them empty."""
    chunks = []
    for n in array.shape:
        cuts = np.sort(rng.integers(0, n + 1, rng.integers(0, 4)))
        chunks.append(tuple(np.diff([0, *cuts, n]).tolist()))
    return da.from_array(array, chunks=tuple(chunks))


@pytest.fixture(scope="module", params=STRATEGIES)
def strategy(request):
    with session(request.param, settings={"array.chunk-size": "64KiB"}):
        yield request.param


@pytest.mark.parametrize("name", CALLS)
def test_fifty_chunkings_have_one_digest(strategy, name):
    op, dtype, reduction = CALLS[name]
    operands = [TABLE.astype(dtype), INDICES]
    options = {}
    if reduction is not None:
        operands.append(UPDATES.astype(dtype))
        options = {"reduction": reduction}
    digests, strategies = {digest(getattr(gatherum, op)(*operands, **options))}, set()
    for seed in range(50):
        rng = np.random.default_rng(seed)
        chunked = [cut(operand, rng) for operand in operands]
        strategies.add(gatherum.explain(op, *chunked, **options).strategy.partition(":")[0])
        digests.add(digest(getattr(gatherum, op)(*chunked, **options).compute()))
    assert len(digests) == 1
    assert strategy in strategies


LONG, SHORT, COLUMNS = 200_000, 20_000, 128  # 25.6 million elements into 2.56 million


def numbers(rows, columns):
    """Return values that depend only on their position, for any chunking."""
    place = rows[:, None].astype(np.uint64) * np.uint64(COLUMNS) + columns.astype(np.uint64)
    mixed = (place * np.uint64(2654435761)) % np.uint64(1 << 32)
    return mixed.astype(np.float32) / np.float32(1 << 31) - np.float32(1)


def number_block(block_info):
    rows, columns = (np.arange(*ends) for ends in block_info[None]["array-location"])
    return numbers(rows, columns)


def number_array(length, rows, columns):
    chunks = da.core.normalize_chunks((rows, columns), (length, COLUMNS))
    meta = np.empty((0, 0), np.float32)
    return da.map_blocks(number_block, chunks=chunks, dtype=np.float32, meta=meta)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_25_6_million_elements_are_added_in_one_order(strategy):
    indices = np.random.default_rng(0).zipf(1.2, LONG) % SHORT
    expected = numbers(np.arange(SHORT), np.arange(COLUMNS))
    np.add.at(expected, indices, numbers(np.arange(LONG), np.arange(COLUMNS)))
    irregular = (0, 1, 7, 31_000, 0, 68_992, 100_000)
    chunkings = [
        # The table, the indices, the updates: rows and columns.
        ((2_500, COLUMNS), 10_000, (10_000, COLUMNS)),
        ((2_500, 50), 25_000, (10_000, 64)),
        (((0, 19_999, 1, 0), COLUMNS), irregular, ((150_000, 50_000), 128)),
        (((3_000, 17_000), (1, 127)), 200_000, (irregular, (128, 0))),
    ]
    with session(strategy, settings={"array.chunk-size": "4MiB"}):
        for table, where, updates in chunkings:
            operands = (
                number_array(SHORT, *table),
                da.from_array(indices, chunks=(where,)),
                number_array(LONG, *updates),
            )
            result = gatherum.scatter_slices(*operands, reduction="add")
            assert (
                strategy in gatherum.explain("scatter_slices", *operands, reduction="add").strategy
            )
            assert digest(result.compute()) == digest(expected)
