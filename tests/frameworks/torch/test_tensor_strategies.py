"""`explain` names the strategy of a call on tensors, and why the core declined it."""

import pytest
from tensors import torch

import gatherum

INDICES = torch.tensor([2, 0])


class Named(torch.Tensor):
    """A subclass, which torch's dispatcher handles."""


def leaf():
    return torch.zeros(3, requires_grad=True)


STRATEGIES = {
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


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_strategy_is_named(name):
    data, indices, strategy = STRATEGIES[name]
    explanation = gatherum.explain("gather", data, indices)
    assert explanation.strategy == strategy
    assert ("\n  strategy  " in str(explanation)) == bool(strategy)


def test_a_mode_or_no_gradient_changes_the_strategy():
    with torch.no_grad():
        assert gatherum.explain("gather", leaf(), INDICES).strategy == "eager"
    watched = "op: a mode, transform or level of forward-mode differentiation is active"
    with torch.autograd.forward_ad.dual_level():
        assert gatherum.explain("gather", torch.zeros(3), INDICES).strategy == watched

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    data = torch.zeros(3)
    with Mode():
        assert gatherum.explain("gather", data, INDICES).strategy == watched


def test_only_the_op_strategy_calls_the_dispatcher():
    """The strategies are those that calls have: only torch's dispatcher profiles the ops."""
    for data, indices, strategy in STRATEGIES.values():
        if not strategy or strategy.startswith("meta"):
            continue
        with torch.profiler.profile() as profile:
            gatherum.gather(data, indices)
        ops = [event.key for event in profile.key_averages() if event.key == "gatherum::gather"]
        assert bool(ops) == strategy.startswith("op")
