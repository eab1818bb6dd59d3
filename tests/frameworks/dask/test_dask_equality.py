"""Calls on Dask arrays equal calls on NumPy arrays bit for bit, for any chunks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gatherum
from cases import CASES
from strategies import DATA_DTYPES, OPERATORS, PADDED, calls, outcome, same_bits, same_outcome

da = pytest.importorskip("dask.array", reason="install Dask: pip install 'dask[array]'")
import dask  # noqa: E402
from chunked import chunked, chunkings  # noqa: E402

import gatherum.dask  # noqa: E402
from gatherum._model.call import Attributes  # noqa: E402
from gatherum.dask import operands  # noqa: E402
from gatherum.dask.planning import choice  # noqa: E402

# Dask copies records field by field, without the padding between fields.
WHOLE = [dtype for dtype in DATA_DTYPES if dtype != PADDED]
# Dask makes scalars of blocks without a dimension; older NumPy does not set their padding.
if np.lib.NumpyVersion(np.__version__) < "2.4.0":
    WHOLE = [dtype for dtype in WHOLE if np.dtype(dtype).char not in "gG"]


class Computed:
    """The six functions, each with its result computed."""

    def __getattr__(self, op):
        return lambda *operands, **attributes: computed(op, operands, attributes)


def computed(op, operands, attributes):
    lazy = getattr(gatherum.dask, op)(*operands, **attributes)
    assert isinstance(lazy, da.Array)
    result = np.asarray(lazy.compute())
    assert lazy.shape == result.shape
    assert lazy.dtype == result.dtype
    assert all(size >= 0 for sizes in lazy.chunks for size in sizes)
    return result


@pytest.fixture(params=["as chosen", "by routes", "by routes in steps", "apart"])
def strategy(request, monkeypatch):
    """Use each of the strategies; small arrays would use only one."""
    if request.param != "as chosen":
        monkeypatch.setattr(choice, "SMALL_BYTES", -1)
        monkeypatch.setattr(operands, "TINY_BYTES", 0)
    if request.param == "apart":
        monkeypatch.setattr(choice, "partial_pays", lambda *sizes: True)
    if request.param in ("by routes in steps", "apart"):
        for module in (choice, operands):
            monkeypatch.setattr(module, "chunk_bytes", lambda: 24)
    return request.param


@pytest.mark.parametrize("case", CASES, ids=str)
@settings(max_examples=2)
@given(data=st.data())
def test_the_named_cases(case, data):
    operands = [case.data, case.indices, *([] if case.updates is None else [case.updates])]
    cut = [da.from_array(one, chunks=data.draw(chunkings(one.shape))) for one in operands]
    for operators in (gatherum, gatherum.dask):
        result = getattr(operators, case.op)(*cut, **case.attributes)
        assert isinstance(result, da.Array)
        assert same_bits(np.asarray(result.compute()), case.expected)


@pytest.mark.parametrize("op", OPERATORS)
def test_random_calls(op, strategy):
    @given(st.data())
    @settings(max_examples=10)
    def run(data):
        call = data.draw(calls([op], data_dtypes=WHOLE, most_dimensions=6))
        expected = outcome(gatherum, call)
        cut = data.draw(chunked(call))
        result = outcome(Computed(), cut)
        assert same_outcome(result, expected), (result, expected)
        if isinstance(expected, Exception):
            assert str(result) == str(expected)

    run()


@pytest.fixture
def cut_as_large(monkeypatch):
    """Cut results of small data as those of large data."""
    monkeypatch.setattr(operands, "TINY_BYTES", 0)


@pytest.mark.parametrize("chunks", [(50, 100), (2, 5), (100, 100), (1, 100)])
@pytest.mark.parametrize("entries", [(1,), (99,), (100,), (401,), (2, 120), (1, 3, 40)])
def test_indices_in_memory_give_chunks_as_vindex_does(chunks, entries, cut_as_large):
    data = da.arange(10_000).reshape(100, 100).rechunk(chunks)
    points = np.random.default_rng(0).integers(0, 100, (*entries, 2))
    result = gatherum.gather_nd(data, points)
    theirs = data.vindex[points[..., 0], points[..., 1]]
    assert np.prod(result.chunksize) <= np.prod(chunks)
    if len(entries) == 1:
        assert result.numblocks == theirs.numblocks
    assert np.array_equal(result.compute(), theirs.compute())


@pytest.mark.parametrize(
    ("op", "chunks", "indices", "expected"),
    [
        ("gather", (3, 5), (12,), ((3, 3, 3, 3), (5, 5))),
        ("gather", (3, 5), (4, 3), ((1, 1, 1, 1), (3,), (5, 5))),
        ("gather", (3, 5), (2, 9), ((1, 1), (3, 3, 3), (5, 5))),
        ("gather", (3, 5), (1, 2, 6), ((1,), (1, 1), (3, 3), (5, 5))),
        ("gather", (8, 5), (2, 6, 3), ((1, 1), (2, 2, 2), (3,), (5, 5))),
        ("gather", (3, 5), (0, 9), ((0,), (3, 3, 3), (5, 5))),
        ("gather", (3, 5), (), ((5, 5),)),
        ("gather", (1, 10), (6,), ((1,) * 6, (10,))),
        ("gather", (12, 5), (36,), ((12, 12, 12), (5, 5))),
        ("gather_elements", (3, 5), (12, 10), ((3, 3, 3, 3), (5, 5))),
        ("gather_nd", (3, 5), (40, 2), ((13, 13, 14),)),
        ("gather_nd", (3, 5), (2, 9, 1), ((1, 1), (3, 3, 3), (5, 5))),
    ],
)
def test_the_chunks_of_results(op, chunks, indices, expected, cut_as_large):
    data = da.zeros((12, 10), chunks=chunks)
    result = getattr(gatherum, op)(data, np.zeros(indices, int))
    assert result.chunks == expected


@pytest.mark.parametrize(
    ("rows", "indices"),
    [(100_000, (300_000,)), (1000, (300_000,)), (1, (300_000,)), (1000, (2, 100_000))],
)
def test_chunks_of_results_are_no_larger_than_the_data_or_tiny(rows, indices):
    data = da.zeros((200_000, 8), chunks=(rows, 8))
    result = gatherum.gather(data, np.arange(np.prod(indices)).reshape(indices) % 200_000)
    most = max(rows * 8 * 8, operands.TINY_BYTES)
    assert most / 2 < np.prod(result.chunksize) * 8 <= most


@pytest.mark.parametrize("in_memory", [True, False])
def test_no_chunk_is_larger_than_dask_wants(in_memory):
    data = da.zeros((12, 10), chunks=(6, 5))
    indices = np.zeros((2, 9), int)
    operand = indices if in_memory else da.from_array(indices, chunks=-1)
    elements = np.zeros((9, 10), int)
    elements = elements if in_memory else da.from_array(elements, chunks=-1)
    with dask.config.set({"array.chunk-size": "150B"}):  # three rows of 5 items, and their indices
        assert gatherum.gather(data, operand).chunks == ((1, 1), (3, 3, 3), (5, 5))
    with dask.config.set({"array.chunk-size": "1B"}):
        assert gatherum.gather(data, operand).chunks == ((1, 1), (1,) * 9, (5, 5))
        assert gatherum.gather_elements(data, elements).chunks == ((1,) * 9, (5, 5))


def test_a_scatter_cuts_its_updates_in_their_order():
    data, indices = da.zeros((12, 5), chunks=(6, 5)), np.zeros((2, 9), int)
    with dask.config.set({"array.chunk-size": "150B"}):
        scattered = operands.normalize(
            Attributes("scatter_slices", 0, reduction="add"), data, indices, 1.0, 0
        )
    assert scattered.layout.indices == ((1, 1), (3, 3, 3))


def test_indices_of_dask_and_scatters_keep_their_chunks():
    data, indices = da.zeros(1000, chunks=100), np.arange(1000)
    lazy = da.from_array(indices, chunks=700)
    assert gatherum.gather(data, lazy).chunks == ((700, 300),)
    scattered = operands.normalize(
        Attributes("scatter_slices", 0, reduction="add"), data, indices, indices * 1.0, 0
    )
    assert scattered.layout.indices == ((1000,),)
