"""``jax.vmap`` of every operand, separately and together, along every axis, twice, under grad."""

import functools
import itertools

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="install JAX: pip install jax")
import jax.numpy as jnp  # noqa: E402

import gatherum.jax  # noqa: E402
from samples import diagonal, every  # noqa: E402

N = 3
# data, indices, updates (of one member), attributes
FORMS = {
    "gather": [((4, 2), (5,), {}), ((2, 4), (2, 3), {"axis": 1}), ((3, 4, 2), (), {"axis": -2})],
    "gather_elements": [((4, 2), (5, 2), {}), ((2, 4, 2), (2, 3, 1), {"axis": -2})],
    "gather_nd": [((4, 2), (5, 1), {}), ((2, 4, 2), (2, 3, 1), {"batch_dims": 1}),
                  ((2, 2), (3, 0), {}), ((4, 3), (2,), {})],
    "scatter_slices": [((4, 2), (5,), {}), ((2, 4), (2, 3), {"axis": 1}),
                       ((3, 4, 2), (), {"axis": -2})],
    "scatter_elements": [((4, 2), (5, 2), {}), ((2, 4, 2), (2, 3, 1), {"axis": -2})],
    "scatter_nd": [((4, 2), (5, 1), {}), ((2, 4, 2), (2, 3, 1), {"batch_dims": 1}),
                   ((2, 2), (3, 0), {}), ((4, 3), (2,), {})],
}  # fmt: skip
ROWS = [(op, form) for op, forms in FORMS.items() for form in forms]


def batched_dims(op):
    """Return the batched dimensions of operands: every choice except none."""
    count = 3 if op.startswith("scatter") else 2
    return [each for each in itertools.product((True, False), repeat=count) if any(each)]


def operands_of(op, form, batched, rng, where=0):
    """Draw operands, with batches stacked along an axis, and the members of the batch."""
    shape, index_shape, attributes = form
    axis = attributes.get("axis", 0) % len(shape)
    plan = gatherum.plan(op.replace("scatter_slices", "gather").replace("scatter", "gather"),
                         (shape, "f8"), (index_shape, "i8"), **attributes)  # fmt: skip
    shapes = [shape, index_shape, plan.shape]
    limit = (
        min(shape[attributes["batch_dims"] :])
        if "batch_dims" in attributes
        else (min(shape) if op.endswith("nd") else shape[axis])
    )
    stacked, members = [], [[] for _ in range(N)]
    for number, (own, many) in enumerate(zip(shapes, batched, strict=False)):
        full = (N, *own) if many else own
        halves = rng.integers(-3, 4, full) / 2
        drawn = rng.integers(-limit, limit, full) if number == 1 else halves
        at = min(where, len(own))
        stacked.append(jnp.asarray(np.moveaxis(drawn, 0, at) if many else drawn))
        for member in range(N):
            members[member].append(drawn[member] if many else drawn)
    dims = tuple(min(where, len(own)) if many else None
                 for own, many in zip(shapes, batched, strict=False))  # fmt: skip
    return stacked, members, dims


@pytest.mark.parametrize(("row", "where"), diagonal(2, ROWS, [0, 1]), ids=str)
def test_a_batch_is_its_members_one_by_one(row, where):
    op, form = row
    rng = np.random.default_rng(5)
    folds = [{}] if op.startswith("gather") else [
        {"reduction": reduction, "include_self": keep}
        for reduction, keep in (("none", True), ("add", True), ("mul", False), ("mean", True))
    ]  # fmt: skip
    for batched, more in itertools.product(batched_dims(op), folds):
        stacked, members, dims = operands_of(op, form, batched, rng, where)
        attributes = form[2] | more
        run = functools.partial(getattr(gatherum.jax, op), **attributes)
        result = jax.vmap(run, dims)(*stacked)
        expected = [getattr(gatherum, op)(*member, **attributes) for member in members]
        np.testing.assert_array_equal(result, np.stack(expected), err_msg=f"{batched} {more}")


@pytest.mark.parametrize(("op", "form"), every(6, ROWS), ids=str)
def test_gradients_of_batches_and_batches_of_gradients(op, form):
    rng = np.random.default_rng(6)
    scatters = op.startswith("scatter")
    wanted = (0, 2) if scatters else (0,)
    number = FORMS[op].index(form)
    for turn, batched in enumerate(batched_dims(op), number):
        if turn % len(FORMS[op]) > 0:
            continue  # each choice is tested with one form of an operator
        reduction = ("add", "max", "mul")[(turn + number) % 3]  # a different one for each form
        stacked, members, dims = operands_of(op, form, batched, rng)
        attributes = form[2] | ({"reduction": reduction} if scatters else {})

        def square(*each, attributes=attributes):
            return (getattr(gatherum.jax, op)(*each, **attributes) ** 2).sum()

        result = jax.jit(jax.vmap(jax.grad(square, wanted), dims))(*stacked)
        expected = [jax.grad(square, wanted)(*map(jnp.asarray, member)) for member in members]
        for one, several in zip(result, zip(*expected, strict=True), strict=True):
            np.testing.assert_allclose(one, np.stack(several), atol=1e-12)

        def total(*each, square=square, dims=dims):
            return jax.vmap(square, dims)(*each).sum()

        together = jax.grad(total, wanted)(*stacked)
        for number, one, several in zip(wanted, together, result, strict=True):
            whole = several if dims[number] is not None else several.sum(0)
            np.testing.assert_allclose(one, whole, atol=1e-12)


@pytest.mark.parametrize("op", list(FORMS))
def test_batches_of_batches(op):
    shape, index_shape, attributes = FORMS[op][1]
    rng = np.random.default_rng(7)
    data, indices = rng.standard_normal((2, *shape)), rng.integers(0, 2, (3, *index_shape))
    updates = [rng.standard_normal(gatherum.plan(op.replace("scatter_slices", "gather").replace(
        "scatter", "gather"), (shape, "f8"), (index_shape, "i8"), **attributes).shape)] if (
        op.startswith("scatter")) else []  # fmt: skip
    none = [None] * len(updates)

    def run(*each):
        return getattr(gatherum.jax, op)(*each, **attributes)

    result = jax.vmap(jax.vmap(run, (None, 0, *none)), (0, None, *none))(data, indices, *updates)
    for i, j in itertools.product(range(2), range(3)):
        expected = getattr(gatherum, op)(data[i], indices[j], *updates, **attributes)
        np.testing.assert_array_equal(result[i, j], expected)


def test_one_table_is_not_copied_for_many_indices():
    """Neither the table nor any array as large is repeated: the program has no broadcast."""
    table = jnp.ones((100, 2))
    for op, indices in (
        ("gather", (7, 5)),
        ("gather_elements", (7, 5, 2)),
        ("gather_nd", (7, 5, 1)),
    ):
        run = jax.vmap(lambda one, op=op: getattr(gatherum.jax, op)(table, one))
        assert "broadcast_in_dim[\n" not in str(jax.make_jaxpr(run)(jnp.zeros(indices, int)))
        shapes = [
            variable.aval.shape
            for equation in jax.make_jaxpr(run)(jnp.zeros(indices, int)).eqns
            for variable in equation.outvars
        ]
        assert (7, 100, 2) not in shapes


@pytest.mark.parametrize("shape", [(4, 2, 0), (0, 2, 3), (4, 0, 3)])
def test_batches_without_elements(shape):
    table, indices = jnp.ones((2, 3)), jnp.zeros(shape, jnp.int32)
    result = jax.vmap(lambda i: gatherum.gather_elements(table, i, 0))(indices)
    assert result.shape == shape
