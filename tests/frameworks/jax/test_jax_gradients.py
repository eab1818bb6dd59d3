"""Derivatives, compared with finite differences to second order, forward and backward."""

import functools
import itertools

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="install JAX: pip install jax")
import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import gatherum.jax  # noqa: E402
from gatherum._model.reductions import REDUCTIONS, ROWS  # noqa: E402
from samples import diagonal, every  # noqa: E402

BOTH = ("fwd", "rev")
MODES = ("raise", "clip", "wrap", "drop", "fill")

# data, indices with duplicates, updates, attributes; index 9 is invalid and needs a mode.
SLICES = (3, 4, 2), np.array([[1, 3], [1, 0], [1, 1]]), (3, 3, 2, 2), {"axis": 1}
ELEMENTS = (3, 2), np.array([[0, 2], [2, 2], [1, 0], [0, 0]]), (4, 2), {"axis": 0}
TUPLES = (2, 3, 2), np.array([[[1], [1], [2]], [[0], [0], [0]]]), (2, 3, 2), {"batch_dims": 1}
SCATTERS = {"scatter_slices": SLICES, "scatter_elements": ELEMENTS, "scatter_nd": TUPLES}
GATHERS = {"gather": SLICES, "gather_elements": ELEMENTS, "gather_nd": TUPLES}


def values(shape, seed):
    """Return values with distances, so that small steps do not change which is the largest."""
    rng = np.random.default_rng(seed)
    spread = rng.permutation(int(np.prod(shape))) + rng.uniform(0.1, 0.4)
    return jnp.asarray((spread.reshape(shape) - spread.mean()) / spread.size + 2 * seed / 100)


def invalid_in(indices, mode):
    if mode == "raise":
        return jnp.asarray(indices)
    changed = indices.copy()
    changed.flat[1] = 9
    changed.flat[-1] = -9
    return jnp.asarray(changed)


def of(op, **attributes):
    return functools.partial(getattr(gatherum.jax, op), **attributes)


@pytest.mark.parametrize(("op", "mode"), diagonal(2, GATHERS, MODES))
def test_gathers(op, mode):
    shape, indices, _, attributes = GATHERS[op]
    indices = invalid_in(indices, mode)
    filled = {"fill_value": 7.5} if mode == "fill" else {}
    run = of(op, mode=mode, **attributes, **filled)
    check_grads(lambda data: run(data, indices) ** 3, (values(shape, 1),), 2, BOTH)


def folds():
    """Yield each reduction in each operator and each mode, but not all combinations."""
    others = {"scatter_slices": "clip", "scatter_elements": "wrap", "scatter_nd": "fill"}
    for turn, (reduction, keep) in enumerate(itertools.product(REDUCTIONS, (True, False))):
        for place, (op, other) in enumerate(others.items(), turn // 2):
            yield op, reduction, keep, ("raise", "drop", other)[(place + keep) % 3]


@pytest.mark.parametrize(("op", "reduction", "include_self", "mode"), every(8, folds()))
def test_scatters(op, reduction, include_self, mode):
    shape, indices, moved, attributes = SCATTERS[op]
    indices = invalid_in(indices, mode)
    run = of(op, reduction=reduction, include_self=include_self, mode=mode, **attributes)
    operands = values(shape, 2), values(moved, 3)
    check_grads(lambda data, new: run(data, indices, new) ** 2, operands, 2, BOTH, rtol=1e-2)


@pytest.mark.parametrize(
    ("op", "zeros_and_keep"),
    diagonal(6, SCATTERS, list(itertools.product([1, 2, 3], [True, False]))),
)
def test_products_with_zeros(op, zeros_and_keep):
    zeros, include_self = zeros_and_keep
    shape, indices, moved, attributes = SCATTERS[op]
    data, updates = np.array(values(shape, 2)), np.array(values(moved, 3))
    where = {
        "scatter_slices": ([(0, 0, 0, 1), (0, 1, 0, 1)], (0, 1, 1)),
        "scatter_elements": ([(0, 0), (3, 0)], (0, 0)),
        "scatter_nd": ([(0, 0, 0), (0, 1, 0)], (0, 1, 0)),
    }[op]
    for place in where[0][:zeros]:
        updates[place] = 0
    if zeros == 3:
        data[where[1]] = 0
    run = of(op, reduction="mul", include_self=include_self, **attributes)
    operands = jnp.asarray(data), jnp.asarray(updates)
    check_grads(lambda data, new: run(data, jnp.asarray(indices), new), operands, 2, BOTH)


@pytest.mark.parametrize(("op", "reduction"), diagonal(4, SCATTERS, REDUCTIONS))
def test_updates_that_are_repeated(op, reduction):
    shape, indices, moved, attributes = SCATTERS[op]
    run = of(op, reduction=reduction, **attributes)
    shapes = moved[1:], moved[-1:], (1, *moved[1:]), ()
    turn = list(SCATTERS).index(op) + REDUCTIONS.index(reduction)
    order = 1 if ROWS[reduction].is_linear else 2
    for small in shapes[turn % 2 :: 2]:  # each is tested with each operator and each reduction
        operands = values(shape, 2), values(small, 4) if small else jnp.asarray(0.3)
        check_grads(lambda data, new: run(data, jnp.asarray(indices), new), operands, order, BOTH)


@pytest.mark.parametrize("reduction", every(2, ["none", "add", "mul", "mean"]))
def test_complex_numbers(reduction):
    shape, indices, moved, attributes = ELEMENTS
    operands = [values(shape, 1) + 1j * values(shape, 2), values(moved, 3) - 1j * values(moved, 4)]
    run = of("scatter_elements", reduction=reduction, **attributes)
    check_grads(lambda *both: run(both[0], jnp.asarray(indices), both[1]), operands, 2, BOTH)


def test_ties_share_equally():
    def largest(data, updates):
        return gatherum.jax.scatter_nd(data, [[0], [0], [1]], updates, reduction="max")[0]

    of_data, of_updates = jax.grad(largest, (0, 1))(jnp.array([2.0, 1.0]), jnp.array([2.0, 2, 5]))
    assert of_data.tolist() == [1 / 3, 0]
    assert of_updates.tolist() == [1 / 3, 1 / 3, 0]


def test_a_replaced_element_and_a_lost_update_have_no_gradient():
    def run(data, updates):
        return gatherum.jax.scatter_nd(data, [[0], [0], [2]], updates).sum()

    gradients = jax.grad(run, (0, 1))(jnp.zeros(3), jnp.ones(3))
    assert [each.tolist() for each in gradients] == [[0, 1, 0], [0, 1, 1]]


@pytest.mark.parametrize(
    ("reduction", "dtype"), diagonal(3, REDUCTIONS, ["float16", "bfloat16", "float32"])
)
def test_narrow_types_count_in_a_wider_one(dtype, reduction):
    """A thousand updates: bfloat16 counts to 256, float16 overflows in a product's shares."""
    n = 1000
    data, updates = jnp.ones(1, dtype), jnp.ones(n, dtype)

    def run(data, updates):
        index = jnp.zeros((n, 1), jnp.int32)
        return gatherum.jax.scatter_nd(data, index, updates, reduction=reduction)[0]

    of_data, of_updates = jax.grad(run, (0, 1))(data, updates)
    share = 1.0 if reduction in ("none", "add", "mul", "fsum") else 1 / (n + 1)
    expected = jnp.asarray(share, dtype)
    assert of_data.dtype == of_updates.dtype == dtype
    assert of_data[0] == (0 if reduction == "none" else expected)
    assert of_updates[-1] == expected
    assert of_updates[0] == (0 if reduction == "none" else expected)


def test_a_type_of_eight_bits_sums_in_a_wider_one():
    data = jnp.arange(4.0).astype("float8_e4m3fn")
    _, back = jax.vjp(lambda data: gatherum.jax.gather(data, [1, 1, 3]), data)
    (result,) = back(jnp.ones(3, "float8_e4m3fn"))
    assert result.dtype == data.dtype
    assert result.astype(np.float32).tolist() == [0, 2, 0, 1]


@pytest.mark.parametrize("op", [*GATHERS, *SCATTERS])
def test_integers_have_no_tangents(op):
    shape, indices, moved, attributes = (GATHERS | SCATTERS)[op]
    more = [jnp.ones(moved, int)] if op in SCATTERS else []

    def run(scale):
        result = of(op, **attributes)(jnp.ones(shape, int), jnp.asarray(indices), *more)
        return scale * result.sum()

    assert jax.grad(run)(2.0) > 0


@pytest.mark.parametrize("reduction", every(2, REDUCTIONS))
def test_hessians_of_scatters(reduction):
    """The Hessians of the same sums, products and choices, written with plain indexing."""
    indices = jnp.array([[0], [2], [0]])
    choose = {"add": jnp.sum, "mul": jnp.prod, "max": jnp.max, "min": jnp.min, "mean": jnp.mean,
              "fsum": jnp.sum, "fmean": jnp.mean,
              "none": lambda each: each[-1]}[reduction]  # fmt: skip

    def ours(data, updates):
        result = gatherum.jax.scatter_nd(data, indices, updates, reduction=reduction)
        return (result**3).sum()

    def by_hand(data, updates):
        first = choose(jnp.stack([data[0], updates[0], updates[2]]))
        last = choose(jnp.stack([data[2], updates[1]]))
        return first**3 + data[1] ** 3 + last**3

    operands = jnp.array([0.5, -1.0, 2.0]), jnp.array([1.5, 0.7, -0.3])
    for own, other in zip(
        jax.tree.leaves(jax.jit(jax.hessian(ours, (0, 1)))(*operands)),
        jax.tree.leaves(jax.hessian(by_hand, (0, 1))(*operands)), strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(own, other, atol=1e-12)


def test_hessians_and_jacobians():
    indices = jnp.array([0, 2, 2, 1])

    def ours(data):
        return (gatherum.jax.gather(data, indices) ** 3).sum()

    def theirs(data):
        return (jnp.take(data, indices) ** 3).sum()

    data = jnp.array([0.5, -1.0, 2.0])
    np.testing.assert_allclose(jax.hessian(ours)(data), jax.hessian(theirs)(data))
    for transform in (jax.jacfwd, jax.jacrev):
        result = transform(lambda data: gatherum.jax.gather(data, indices))(data)
        np.testing.assert_array_equal(result, np.eye(3)[np.array(indices)])


def test_gradients_of_segment_sums_are_those_of_jax():
    rng = np.random.default_rng(0)
    segments = jnp.asarray(rng.integers(0, 5, 40))
    values_in = jnp.asarray(rng.standard_normal((40, 3)))

    def ours(new):
        zeros = jnp.zeros((5, 3))
        return (gatherum.jax.scatter_slices(zeros, segments, new, reduction="add") ** 2).sum()

    def theirs(new):
        return (jax.ops.segment_sum(new, segments, 5) ** 2).sum()

    np.testing.assert_allclose(jax.grad(ours)(values_in), jax.grad(theirs)(values_in))
    jitted = jax.jit(jax.grad(ours))(values_in)
    np.testing.assert_array_equal(jitted, jax.grad(ours)(values_in))
