"""`aggregate` on JAX arrays: NumPy's bits, eager and jitted; derivatives, batches, errors."""

import re
from functools import partial

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="install jax to test its arrays")

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import gatherum  # noqa: E402
from gatherum._model.dtypes import is_reducible  # noqa: E402
from gatherum._model.reductions import FOLDS  # noqa: E402
from samples import diagonal, every  # noqa: E402
from strategies import MODES, same_bits  # noqa: E402

pytestmark = pytest.mark.slow
NAMES = ("int32", "bfloat16", "float32", "complex64")


def drawn(name, mode="raise"):
    rng = np.random.default_rng(3)
    beyond = 2 * (mode != "raise")
    data = (rng.standard_normal((5, 3)) * 9).astype(jnp.dtype(name))
    sources = rng.integers(-5 - beyond, 5 + beyond, (4, 6))
    targets = rng.integers(-3 - beyond, 3 + beyond, (4, 6))
    return data, sources, targets, (rng.standard_normal(6) * 5).astype(jnp.dtype(name))


@pytest.mark.parametrize("turn", [0, 2])
@pytest.mark.parametrize(("name", "reduction"), diagonal(3, NAMES, FOLDS))
def test_the_bits_of_numpy(name, reduction, turn):
    """Each fold of each dtype in two of the modes; all folds share the resolution of indices."""
    mode = MODES[(turn + NAMES.index(name) + FOLDS.index(reduction)) % len(MODES)]
    if not is_reducible(np.dtype(jnp.dtype(name)), reduction):
        return
    operands = drawn(name, mode)
    function = partial(gatherum.aggregate, size=3, reduction=reduction, mode=mode)
    for arguments in (operands, operands[:3]):
        expected = function(*arguments[:3], weights=arguments[3] if arguments[3:] else None)

        def call(data, sources, targets, weights=None):
            return function(data, sources, targets, weights=weights)

        arrays = tuple(map(jnp.asarray, arguments))
        assert same_bits(np.asarray(call(*arrays)), expected)
        assert same_bits(np.asarray(jax.jit(call)(*arrays)), expected)


@pytest.mark.parametrize("reduction", every(3, FOLDS))
def test_derivatives_and_batches(reduction):
    data, sources, targets, weights = drawn("float64")
    data, weights = 1 + data / 90, np.random.default_rng(4).uniform(0.5, 2, sources.shape)

    def call(data, weights):
        return gatherum.aggregate(data, sources, targets, 3, reduction, weights)

    check_grads(call, (data, weights), 2, ("fwd", "rev"), rtol=1e-3)
    many = np.stack([data, data + 1])
    result = jax.vmap(call, (0, None))(many, weights)
    alone = [call(jnp.asarray(one), jnp.asarray(weights)) for one in many]
    assert same_bits(np.asarray(result), np.stack(alone))


def test_weights_of_heads_along_an_axis():
    rng = np.random.default_rng(5)
    data = rng.standard_normal((5, 4, 3))
    sources, targets = rng.integers(0, 4, 7), rng.integers(0, 2, 7)
    weights = rng.uniform(0.5, 2, (7, 3))

    def call(data, weights):
        return gatherum.aggregate(data, sources, targets, 3, "mean", weights, axis=-2, fill_value=7)

    expected = call(data, weights)
    arrays = jnp.asarray(data), jnp.asarray(weights)
    assert same_bits(np.asarray(call(*arrays)), expected)
    assert same_bits(np.asarray(jax.jit(call)(*arrays)), expected)
    check_grads(call, arrays, 1, ("fwd", "rev"), rtol=1e-3)


def test_aggregate_checks_the_arguments_of_jax_arrays():
    with pytest.raises(IndexError, match=re.escape(
        "aggregate: index 9 is out of bounds for axis 0 of size 2 (gather_indices[1])"
    )):  # fmt: skip
        gatherum.aggregate(jnp.ones((2, 1)), [0, 9], [0, 0], 1, "add")
    with pytest.raises(TypeError, match=r"^aggregate: `out` must be None for JAX arrays"):
        gatherum.aggregate(jnp.ones((2, 1)), [0], [0], 1, "add", out=np.ones((1, 1)))
    with pytest.raises(TypeError, match=re.escape(
        "aggregate: `weights` must have the dtype of `data`, float32, got float64"
    )):  # fmt: skip
        jax.jit(lambda w: gatherum.aggregate(jnp.ones((2, 1), "f4"), [0], [0], 1, "add", w))(
            jnp.ones(1)
        )
