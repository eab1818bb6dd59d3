"""Graphs of ``torch.jit.trace`` use the sizes of the running call, not of the traced one."""

import pytest
from tensors import room, torch

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),
]
SMALL = torch.arange(6.0).reshape(3, 2), torch.tensor([0, 2, 0])
LARGE = torch.arange(10.0).reshape(5, 2), torch.tensor([0, 4, 0, 1, 1])
POINTERS = torch.tensor([0, 1, 3]), torch.tensor([0, 2, 2, 5])

CALLS = {
    "gather": room.gather,
    "a list": lambda x, i: room.scatter_slices(x, [0, 1], [[1, 2], [3, 4]], reduction="add"),
    "a number": lambda x, i: room.scatter_slices(x, i, 1),
    "a number of bfloat16": lambda x, i: room.scatter_slices(x.bfloat16(), i, 1).float(),
    "out": lambda x, i: room.scatter_slices(x, i, x, out=torch.zeros_like(x)),
    "dim_size": lambda x, i: room.scatter(x, i, 0, dim_size=x.size(0)),
    "computed dim_size": lambda x, i: room.scatter(x, i, 0, dim_size=2 * x.size(0) + 1),
    "constant dim_size": lambda x, i: room.scatter(x, i, 0, dim_size=7),
    "no dim_size": lambda x, i: room.scatter(x, i, 0),
    "mean": lambda x, i: room.scatter(x, i, 0, dim_size=x.size(0), reduce="mean"),
    "mul": lambda x, i: room.scatter(x, i, 0, reduce="mul"),
    "max": lambda x, i: room.scatter_max(x, i, 0, dim_size=x.size(0)),
    "min without dim_size": lambda x, i: room.scatter_min(x, i, 0),
    "along 1": lambda x, i: room.scatter(x.t(), i, 1, dim_size=x.size(0)),
    "elements": lambda x, i: room.scatter(x, torch.stack((i, i), 1), 0, dim_size=x.size(0)),
    "tuples": lambda x, i: room.scatter(
        x[None].expand(2, -1, -1), torch.stack((i, i)), 1, dim_size=x.size(0)
    ),
    "into out": lambda x, i: room.scatter(x, i, 0, out=torch.zeros_like(x), reduce="mean"),
}
OF_SEGMENTS = {
    "segment_csr": room.segment_csr,
    "segment_csr mean": lambda x, p: room.segment_csr(x, p, reduce="mean"),
    "segment_csr along 1": lambda x, p: room.segment_csr(x.t(), p[None].expand(2, -1)),
    "gather_csr": lambda x, p: room.gather_csr(x[: p.size(0) - 1], p),
}


def same(actual, expected):
    if isinstance(expected, tuple):
        return all(map(same, actual, expected))
    return actual.dtype == expected.dtype and torch.equal(actual, expected)


@pytest.mark.parametrize("name", [*CALLS, *OF_SEGMENTS])
def test_traces_take_other_sizes(name):
    call = (CALLS | OF_SEGMENTS)[name]
    operands = [
        (x, i if name in CALLS else p) for (x, i), p in zip((SMALL, LARGE), POINTERS, strict=True)
    ]
    for first, other in (operands, operands[::-1]):
        traced = torch.jit.trace(call, first)
        assert same(traced(*other), call(*other))


def test_traces_raise_the_errors_of_eager_calls():
    scatter = torch.jit.trace(CALLS["dim_size"], SMALL)
    with pytest.raises(RuntimeError, match="index 5 is out of bounds for axis 0 of size 5"):
        scatter(LARGE[0], torch.tensor([0, 5, 1, 1, 1]))
    segments = torch.jit.trace(OF_SEGMENTS["segment_csr"], (SMALL[0], POINTERS[0]))
    for bad in ([0, 4, 2, 5], [-1, 2, 5], [0, 2, 6]):
        with pytest.raises(RuntimeError, match="is out of bounds"):
            segments(LARGE[0], torch.tensor(bad))
