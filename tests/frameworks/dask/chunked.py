"""Arrays cut into chunks of any sizes, including empty chunks."""

import hypothesis.strategies as st
import numpy as np

from strategies import Call

try:
    import dask.array as da
except ImportError:  # the tests are skipped then
    da = None


@st.composite
def chunkings(draw, shape):
    """Draw chunks for a shape: a few per dimension, of any size."""
    chunks = []
    for n in shape:
        cuts = sorted(draw(st.lists(st.integers(0, n), max_size=3)))
        chunks.append(tuple(np.diff([0, *cuts, n]).tolist()))
    return tuple(chunks)


@st.composite
def chunked(draw, call, always=False):
    """Draw the same call with all or some operands as Dask arrays."""
    operands = []
    for operand in call.args:
        if isinstance(operand, np.ndarray) and (always or draw(st.integers(0, 3))):
            chunks = draw(chunkings(operand.shape))
            operand = da.from_array(operand, chunks=chunks, name=False)  # noqa: PLW2901
        operands.append(operand)
    return Call(call.op, tuple(operands), call.kwargs)
