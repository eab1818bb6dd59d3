"""Bits and derivatives of compiled functions over groups, quick enough for the oldest JAX, too."""

from functools import partial

import numpy as np
import pytest

from group_calls import run

jax = pytest.importorskip("jax", reason="install jax to test its arrays")
import jax.numpy as jnp  # noqa: E402

from gatherum.groups import reduce  # noqa: E402
from gatherum.reference import groups as reference  # noqa: E402
from strategies import same_bits  # noqa: E402

VALUES = np.random.default_rng(11).uniform(0.5, 2, (6, 2)).astype(np.float32)
GROUPS = np.array([0, 2, 0, 2, 0, 2])


@pytest.mark.parametrize("func", ["normalize", "median"])
def test_bits_without_wide_types(func):
    jax.config.update("jax_enable_x64", False)
    called = partial(run, func=func, size=3, fill_value=0)
    expected = called(VALUES, GROUPS, module=reference)
    assert same_bits(np.asarray(jax.jit(called)(VALUES, GROUPS)), expected)
    constants = jnp.asarray(VALUES), jnp.asarray(GROUPS)
    assert same_bits(np.asarray(jax.jit(lambda: called(*constants))()), expected)
    batches = jax.jit(jax.vmap(called, (1, None), 1))(VALUES, GROUPS)
    assert same_bits(np.asarray(batches), expected)


@pytest.mark.parametrize("func", ["softmax", "std"])
def test_derivatives_without_wide_types(func):
    """The first two derivatives, compared with those of float64."""
    called = jax.jit(partial(run, groups=GROUPS, func=func, size=3, fill_value=0))
    first = jax.grad(lambda values: jnp.nansum(called(values) ** 3))
    second = jax.grad(lambda values: (first(values) * jnp.sin(values)).sum())
    expected = first(VALUES.astype(float)), second(VALUES.astype(float))
    jax.config.update("jax_enable_x64", False)
    for derivative, wide in zip((first, second), expected, strict=True):
        result = jax.jit(derivative)(VALUES)
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, wide, rtol=1e-3, atol=1e-4)


def test_derivatives_by_weights_of_integers():
    def total(weights):
        return reduce(jnp.arange(6), GROUPS, 3, "std", weights=weights, fill_value=0).sum()

    expected = jax.grad(total)(jnp.arange(1.0, 7))
    jax.config.update("jax_enable_x64", False)
    result = jax.jit(jax.grad(total))(jnp.arange(1.0, 7))
    np.testing.assert_allclose(result, expected, rtol=1e-4)
