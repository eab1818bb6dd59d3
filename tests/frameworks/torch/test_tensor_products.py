"""Derivatives of products, which are known exactly: zeros, infinities, under- and overflow."""

import numpy as np
import pytest
from tensors import compiled, room, torch

from gatherum._derivatives import derivatives
from product_cases import DIRECTION, EDGES, SUBNORMAL, WEIGHTS, ZEROS
from samples import every

func = torch.func
EDGES = EDGES | SUBNORMAL


def products(case, op="scatter_elements"):
    """Return a case as a function of its vector."""
    indices = torch.tensor(case.indices)
    indices = indices[:, None] if op == "scatter_nd" else indices

    def run(vector):
        data, updates = vector[: case.places], vector[case.places :]
        more = {"mode": "drop", "negative": False, "include_self": case.include_self}
        return getattr(room, op)(data, indices, updates, reduction="mul", **more)

    return run


def recorded(run, x, more=False):
    leaf = x.clone().requires_grad_()
    return torch.autograd.grad(run(leaf), leaf, create_graph=more)[0].detach()


FIRST = {
    "autograd": recorded,
    "autograd, create_graph": lambda run, x: recorded(run, x, more=True),
    "grad": lambda run, x: func.grad(run)(x),
    "grad of vmap": lambda run, x: func.grad(lambda t: func.vmap(run)(t).sum())(x[None])[0],
    "vmap of grad": lambda run, x: func.vmap(func.grad(run))(x[None])[0],
    "compiled": lambda run, x: recorded(compiled(run), x),
    "grad, compiled": lambda run, x: compiled(func.grad(run))(x),
}


@pytest.mark.parametrize("name", FIRST)
def test_first_derivatives_at_the_edges(name):
    for what, case in EDGES.items():
        if "compiled" in name and what != "skipped":
            continue
        run = products(case)
        gradient = FIRST[name](lambda x, run=run: run(x).sum(), torch.from_numpy(case.vector))
        assert np.allclose(gradient.numpy(), case.gradient(), 1e-14, 0, equal_nan=True), what


@pytest.mark.parametrize("op", ["scatter_elements", "scatter_slices", "scatter_nd"])
def test_tangents_at_the_edges(op):
    for name, case in EDGES.items():
        run, x = products(case, op), torch.from_numpy(case.vector)
        _, result = func.jvp(run, (x,), (torch.ones_like(x),))
        with torch.autograd.forward_ad.dual_level():
            dual = run(torch.autograd.forward_ad.make_dual(x, torch.ones_like(x)))
            again = torch.autograd.forward_ad.unpack_dual(dual).tangent
        for one in (result, again):
            assert np.allclose(one.numpy(), case.tangent(), 1e-14, 0, equal_nan=True), name


def test_an_operand_without_a_tangent_is_left_out():
    """A missing tangent is not 0, which an infinite factor would turn into NaN."""

    def run(updates):
        return room.scatter_elements(torch.ones(1), [0, 0], updates, reduction="mul")

    updates = torch.tensor([1e30, 1e30])
    _, result = func.jvp(run, (updates,), (torch.tensor([1.0, 0]),))
    assert torch.equal(result, updates[:1])
    assert torch.equal(func.jacfwd(run)(updates), updates[None])


def test_a_reduction_without_a_rule_is_refused(monkeypatch):
    monkeypatch.delitem(derivatives.FACTORS, "max")
    run = lambda x: room.scatter_elements(x, [0, 0], x, reduction="max").sum()  # noqa: E731
    x, refused = torch.ones(2), "^no derivative of `reduction` 'max' is defined"
    with pytest.raises(NotImplementedError, match=refused):
        recorded(run, x)
    with pytest.raises(NotImplementedError, match=refused):
        func.grad(run)(x)
    with pytest.raises(NotImplementedError, match=refused):
        func.jvp(run, (x,), (x,))
    assert run(x) == 2


@pytest.mark.parametrize("name", ZEROS)
def test_derivatives_along_a_direction_to_the_fourth_order(name):
    case = ZEROS[name]
    run, x, v = products(case), torch.from_numpy(case.vector), torch.from_numpy(DIRECTION)

    def derivative(vector):
        return (run(vector) * torch.from_numpy(WEIGHTS)).sum()

    for order in range(1, 5):
        gradient = func.grad(derivative)
        expected = case.along(WEIGHTS, order, DIRECTION)
        assert np.array_equal(gradient(x).numpy(), expected), order
        if order == 2:  # the third order is backward over forward over backward
            derivative = lambda x, f=derivative: func.jvp(f, (x,), (v,))[1]  # noqa: E731
        else:
            derivative = lambda x, g=gradient: (g(x) * v).sum()  # noqa: E731


@pytest.mark.slow
@pytest.mark.parametrize("name", every(6, ZEROS))
def test_all_derivatives_to_the_fourth_order(name):
    case = ZEROS[name]
    run, x = products(case), torch.from_numpy(case.vector)

    def function(vector):
        return (run(vector) * torch.from_numpy(WEIGHTS)).sum()

    ways = (func.jacrev, func.jacfwd, func.jacrev, func.jacrev)
    for order, way in enumerate(ways, 1):
        function = way(function)
        result = function(x)
        assert np.array_equal(result.numpy(), case.derivative(WEIGHTS, order)), order
