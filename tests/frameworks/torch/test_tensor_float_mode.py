"""Arithmetic by torch does not depend on the floating-point mode of the calling thread."""

import numpy as np
import pytest
from tensors import torch

import gatherum
from gatherum.groups import reduce, transform
from gatherum.torch import torch_scatter

pytestmark = pytest.mark.slow
rng = np.random.default_rng(0)
GROUPS = torch.from_numpy(rng.integers(0, 40, 300))
ROWS = GROUPS[:, None]
VALUES = torch.from_numpy(rng.standard_normal(300) * 1e-307)
LEAF = VALUES.clone().requires_grad_()
SUBNORMAL, ROOTS = VALUES / 64, VALUES.abs().sqrt()
NARROW = (VALUES * 1e269).float()
ONES, LOW = torch.ones(300).double(), torch.full((300,), -10.0)
OLD = VALUES[:40]


def derived(function, *operands):
    """Return the derivatives of a function of values, for small changes of the results."""
    leaves = [operand.detach().clone().requires_grad_() for operand in operands]
    result = function(*leaves)
    return torch.cat(torch.autograd.grad(result, leaves, VALUES[: len(result)].to(result.dtype)))


CALLS = {
    "std": lambda: reduce(NARROW, GROUPS, 40, "std"),
    "centre": lambda: transform(VALUES, GROUPS, "centre"),
    "centre of a leaf": lambda: transform(LEAF, GROUPS, "centre").detach(),
    "all": lambda: reduce(SUBNORMAL, GROUPS, 40, "all"),
    "std into a tensor": lambda: torch_scatter.scatter_std(ROOTS, GROUPS),
    "mean into a tensor": lambda: torch_scatter.scatter_mean(VALUES, GROUPS, out=OLD.clone()),
    "log of sums": lambda: torch_scatter.scatter_logsumexp(
        SUBNORMAL[:1], GROUPS[:1] * 0, out=LOW[:1].double() * 100
    ),
    "derivative of a mean": lambda: derived(
        lambda values: gatherum.scatter_nd(OLD, ROWS, values, reduction="mean"), VALUES
    ),
    "derivative of an aggregation": lambda: derived(
        lambda data, weights: gatherum.aggregate(data, GROUPS, GROUPS, 40, "mean", weights),
        ONES,
        ONES,
    ),
    "derivative of softmax": lambda: derived(
        lambda values: transform(values, GROUPS, "softmax"), VALUES
    ),
    "derivative of exp": lambda: derived(torch.ops.gatherum.exp, LOW.double()),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_do_not_depend_on_flush_to_zero(name):
    expected = CALLS[name]()
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor does not flush subnormals")
    try:
        actual = CALLS[name]()
    finally:
        torch.set_flush_denormal(False)
    assert actual.numpy().tobytes() == expected.numpy().tobytes()
