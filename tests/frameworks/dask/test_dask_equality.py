"""Calls on Dask's arrays have the bits of calls on NumPy's, whatever their chunks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gatherum
from cases import CASES
from strategies import DATA_DTYPES, OPERATORS, PADDED, calls, outcome, same_bits, same_outcome

da = pytest.importorskip("dask.array", reason="install Dask: pip install 'dask[array]'")
from chunked import chunked, chunkings  # noqa: E402

import gatherum.dask  # noqa: E402
from gatherum.dask import operands, strategy  # noqa: E402

# Dask copies records field by field, without what lies between them.
WHOLE = [dtype for dtype in DATA_DTYPES if dtype != PADDED]
# Dask makes scalars of blocks without a dimension; older NumPy leaves the padding of theirs unset.
if np.lib.NumpyVersion(np.__version__) < "2.4.0":
    WHOLE = [dtype for dtype in WHOLE if np.dtype(dtype).char not in "gG"]


class Computed:
    """The six functions, each with its result computed."""

    def __getattr__(self, op):
        return lambda *operands, **attributes: computed(op, operands, attributes)


def computed(op, operands, attributes):
    lazy = getattr(gatherum.dask, op)(*operands, **attributes)
    assert isinstance(lazy, da.Array)
    found = np.asarray(lazy.compute())
    assert lazy.shape == found.shape
    assert lazy.dtype == found.dtype
    assert all(size >= 0 for sizes in lazy.chunks for size in sizes)
    return found


@pytest.fixture(params=["as chosen", "by routes", "by routes in steps", "apart"])
def movement(request, monkeypatch):
    """Each of the strategies; small arrays would take only one."""
    if request.param != "as chosen":
        monkeypatch.setattr(strategy, "SMALL_BYTES", -1)
    if request.param == "apart":
        monkeypatch.setattr(strategy, "partial_pays", lambda *sizes: True)
    if request.param in ("by routes in steps", "apart"):
        for module in (strategy, operands):
            monkeypatch.setattr(module, "chunk_bytes", lambda: 24)
    return request.param


@pytest.mark.parametrize("case", CASES, ids=str)
@settings(max_examples=5)
@given(data=st.data())
def test_the_named_cases(case, data):
    operands = [case.data, case.indices, *([] if case.updates is None else [case.updates])]
    cut = [da.from_array(one, chunks=data.draw(chunkings(one.shape))) for one in operands]
    for operators in (gatherum, gatherum.dask):
        found = getattr(operators, case.op)(*cut, **case.attributes)
        assert isinstance(found, da.Array)
        assert same_bits(np.asarray(found.compute()), case.expected)


@pytest.mark.parametrize("op", OPERATORS)
def test_random_calls(op, movement):
    @given(st.data())
    @settings(max_examples=60)
    def run(data):
        call = data.draw(calls([op], data_dtypes=WHOLE, most_dimensions=6))
        expected = outcome(gatherum, call)
        cut = data.draw(chunked(call))
        found = outcome(Computed(), cut)
        assert same_outcome(found, expected), (found, expected)
        if isinstance(expected, Exception):
            assert str(found) == str(expected)

    run()
