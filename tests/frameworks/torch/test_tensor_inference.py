"""Inference-mode tensors can only be changed in place inside that mode, as in torch."""

import re

import pytest
from tensors import room, torch

import gatherum

DATA, ROWS, SOME = torch.arange(12.0).reshape(4, 3), torch.tensor([0, 2]), torch.ones(2, 3)
OPERANDS = {
    "gather": (DATA, ROWS),
    "gather_elements": (DATA, ROWS[:, None].expand(2, 3)),
    "gather_nd": (DATA, ROWS[:, None]),
    "scatter_slices": (DATA, ROWS, SOME),
    "scatter_elements": (DATA, ROWS[:, None].expand(2, 3), SOME),
    "scatter_nd": (DATA, ROWS[:, None], SOME),
}


def made_in_inference(tensor):
    with torch.inference_mode():
        return tensor.clone()


def refused(op, operand):
    text = (
        f"{op}: `{operand}` must not be an inference tensor, which can only be changed in place "
        f"inside torch.inference_mode(); write {operand}.clone()"
    )
    return pytest.raises(RuntimeError, match=f"^{re.escape(text)}$")


@pytest.mark.parametrize("op", OPERANDS)
def test_out(op):
    operands = OPERANDS[op]
    expected = getattr(gatherum, op)(*operands)
    out = made_in_inference(torch.zeros_like(expected))
    for function in (getattr(gatherum, op), getattr(room, op)):
        with refused(op, "out"):
            function(*operands, out=out)
        assert torch.equal(out, torch.zeros_like(expected))  # nothing is written
        with torch.inference_mode():
            assert function(*operands, out=out) is out
            assert torch.equal(out, expected)
            out.zero_()
        assert torch.equal(function(*operands, out=out.clone()), expected)
    with refused(op, "out"):
        getattr(torch.ops.gatherum, f"{op}_out")(*operands, out)
    with torch.no_grad(), refused(op, "out"):
        getattr(gatherum, op)(*operands, out=out)
    lazy = made_in_inference(torch.zeros(expected.shape, dtype=torch.complex64)).conj()
    with refused(op, "out"):
        numbers = [t if t is operands[1] else t.to(lazy.dtype) for t in operands]
        getattr(gatherum, op)(*numbers, out=lazy)


@pytest.mark.parametrize("op", [op for op in OPERANDS if op.startswith("s")])
def test_in_place(op):
    _, *others = OPERANDS[op]
    data = made_in_inference(DATA)
    with refused(op, "out"):
        getattr(gatherum, op)(data, *others, out=data)
    with refused(op, "data"):
        getattr(torch.ops.gatherum, f"{op}_")(data, *others)
    assert torch.equal(data, DATA)
    with torch.inference_mode():
        getattr(torch.ops.gatherum, f"{op}_")(data, *others)
        assert torch.equal(data, getattr(gatherum, op)(DATA, *others))
        normal = DATA.clone()
    with torch.inference_mode():
        assert getattr(gatherum, op)(normal, *others, out=normal) is normal


@pytest.mark.parametrize(
    "name", ["scatter", "scatter_add", "scatter_mul", "scatter_mean", "scatter_max", "scatter_min"]
)
def test_functions_of_torch_scatter(name):
    function, out = getattr(room, name), made_in_inference(torch.zeros(4, 3))
    for src in (SOME, SOME.clone().requires_grad_()):
        with refused(name, "out"):
            function(src, ROWS, 0, out=out)
        assert torch.equal(out, torch.zeros(4, 3))
    with torch.inference_mode():
        function(SOME, ROWS, 0, out=out)
        assert torch.equal(out, torch.zeros(4, 3)) == (name in ("scatter_mul", "scatter_min"))


def test_segments():
    out, pointers = made_in_inference(torch.zeros(2, 3)), torch.tensor([0, 1, 2])
    for name in ("segment_csr", "gather_csr"):
        with refused(name, "out"):
            getattr(room, name)(SOME, pointers, out=out)
        assert torch.equal(out, torch.zeros(2, 3))


def test_inference_tensors_are_read_everywhere():
    data, rows, some = (made_in_inference(t) for t in (DATA, ROWS, SOME))
    assert torch.equal(gatherum.gather(data, rows), DATA[ROWS])
    assert not gatherum.scatter_slices(data, rows, some).is_inference()
    out = torch.zeros(4, 3)
    assert torch.equal(gatherum.scatter_slices(data, rows, some, out=out)[0], SOME[0])
