"""`explain` names the route of a call on tensors, and why the core declined it."""

import pytest
from tensors import torch

import gatherum

INDICES = torch.tensor([2, 0])


class Named(torch.Tensor):
    """A subclass, which torch's dispatcher handles."""


def leaf():
    return torch.zeros(3, requires_grad=True)


ROUTES = {
    "plain": (torch.zeros(3), INDICES, "eager"),
    "recorded": (leaf(), INDICES, "eager, recorded by autograd"),
    "complex": (
        torch.zeros(3, dtype=torch.complex64).conj(),
        INDICES,
        "op: `data` is complex, and may be a lazy conjugate",
    ),
    "negated": (torch.zeros(3, dtype=torch.complex64).conj().imag, INDICES,
                "op: `data` is a lazy negation"),
    "subclass": (torch.zeros(3).as_subclass(Named), INDICES, "op: `data` is of type Named"),
    "a list": (torch.zeros(3), [2, 0], "op: `indices` is of type list"),
    "meta": (torch.zeros(3, device="meta"), INDICES, "meta: an operand has no values"),
    "only described": (torch.zeros(3), ((2,), "i8"), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", ROUTES)
def test_the_route_is_named(name):
    data, indices, route = ROUTES[name]
    explanation = gatherum.explain("gather", data, indices)
    assert explanation.way == route
    assert ("\n  route     " in str(explanation)) == bool(route)


def test_a_mode_or_no_gradient_changes_the_route():
    with torch.no_grad():
        assert gatherum.explain("gather", leaf(), INDICES).way == "eager"
    watched = "op: a mode, transform or level of forward-mode differentiation is active"
    with torch.autograd.forward_ad.dual_level():
        assert gatherum.explain("gather", torch.zeros(3), INDICES).way == watched

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    data = torch.zeros(3)
    with Mode():
        assert gatherum.explain("gather", data, INDICES).way == watched


def test_only_the_op_route_calls_the_dispatcher():
    """The routes are those that calls take: only torch's dispatcher profiles the ops."""
    for data, indices, route in ROUTES.values():
        if not route or route.startswith("meta"):
            continue
        with torch.profiler.profile() as profile:
            gatherum.gather(data, indices)
        ops = [event.key for event in profile.key_averages() if event.key == "gatherum::gather"]
        assert bool(ops) == route.startswith("op")
