"""`gather_quantized` does not accept JAX arrays, and advises what to write."""

import numpy as np
import pytest

import gatherum

jax = pytest.importorskip("jax", reason="install jax to test its arrays: pip install jax")


def test_arrays_of_jax_are_refused():
    data, scales = np.ones((2, 4), np.int8), np.ones((2, 1), np.float32)
    for operands, name in (
        ((jax.numpy.asarray(data), scales), "data"),
        ((data, jax.numpy.asarray(scales)), "scales"),
    ):
        with pytest.raises(TypeError) as caught:
            gatherum.gather_quantized(operands[0], [0], operands[1], block_size=4)
        message = str(caught.value)
        assert message.startswith(f"gather_quantized: `{name}` must be a NumPy array, got a jax.")
        assert message.endswith(f"; write np.asarray({name})")
