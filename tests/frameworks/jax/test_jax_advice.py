"""Every advice of a message about JAX arrays is followed literally, and the call succeeds."""

import numpy as np
import pytest

from advised import follow

jax = pytest.importorskip("jax", reason="install JAX: pip install jax")
import jax.numpy as jnp  # noqa: E402


def table():
    """Made in a test: JAX's backend, once started, warns of the forks in other tests."""
    return jnp.arange(12.0, dtype="float32").reshape(4, 3)


CASES = {
    "mask": (
        lambda: {"data": table(), "mask": table()[:, 0] > 2},
        "gatherum.gather(data, mask)",
        "; np.flatnonzero makes indices of a mask",
        "gatherum.gather(data, np.flatnonzero(mask))",
    ),
    "floats": (
        lambda: {"data": table(), "indices": jnp.array([1.0, 2])},
        "gatherum.gather(data, indices)",
        "; write indices.astype(np.int64)",
        "gatherum.gather(data, indices.astype(np.int64))",
    ),
    "one tuple": (
        lambda: {"data": table()[:, 0], "indices": jnp.array([3, 1])},
        "gatherum.gather_nd(data, indices)",
        "; indices[:, None] makes a tuple of each index",
        "gatherum.gather_nd(data, indices[:, None])",
    ),
    "updates": (
        lambda: {"data": table(), "updates": jnp.ones((1, 3), "float16")},
        "gatherum.scatter_slices(data, [0], updates)",
        "; write updates.astype(data.dtype)",
        "gatherum.scatter_slices(data, [0], updates.astype(data.dtype))",
    ),
    "indices of NumPy's call": (
        lambda: {"data": np.ones(3), "indices": jnp.array([1])},
        "gatherum.gather(data, indices)",
        "; write np.asarray(indices)",
        "gatherum.gather(data, np.asarray(indices))",
    ),
    "quantized": (
        lambda: {"data": jnp.ones((2, 4), "int8"), "scales": np.ones((2, 1), np.float32)},
        "gatherum.gather_quantized(data, [0], scales, block_size=4)",
        "; write np.asarray(data)",
        "gatherum.gather_quantized(np.asarray(data), [0], scales, block_size=4)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_advice_of_arrays_of_jax(name):
    operands, call, advice, advised = CASES[name]
    follow(call, advice, advised, {"np": np, **operands()})


def test_advice_of_a_matrix_of_scipy():
    sparse = pytest.importorskip("scipy.sparse", reason="install scipy to test sparse matrices")
    call = "gatherum.aggregate(data, gather_indices, None, None, 'add')"
    follow(
        call,
        "; write gather_indices.astype(data.dtype)",
        call.replace("gather_indices", "gather_indices.astype(data.dtype)"),
        {"data": table(), "gather_indices": sparse.csr_matrix(np.eye(4))},
    )
