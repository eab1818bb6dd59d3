"""Calls in inductor's generated code enter the core, with the results of the ops."""

import sys
from types import SimpleNamespace

import pytest
from tensors import compiled, room, torch

import gatherum
from gatherum._model.operators import OPERATORS
from gatherum.torch import private
from gatherum.torch.library import inductor

pytest.importorskip(
    private.INDUCTOR, reason="this torch has no table of how ops are written: graphs call the ops"
)
from torch._inductor.utils import fresh_cache, run_and_get_code


def every_operator(x, i, u):
    return (
        room.gather(x, i, 1, mode="wrap"),
        room.gather_elements(x, i, mode="fill", negative=False, fill_value=7),
        room.gather_nd(x, i[:, :1], mode="clip"),
        room.scatter_slices(x, i[0], u, 1, reduction="mean", include_self=False, mode="drop"),
        room.scatter_elements(x, i, u[:2], reduction="mul", mode="wrap"),
        gatherum.scatter_nd(x, i, u[:2, 0], reduction="max", mode="drop"),
    )


def complex_numbers(x, i, u):
    return room.gather(x, i, 1, mode="fill", fill_value=2), room.scatter_nd(x, i, u[:2, 0])


def operands(dtype=torch.float32):
    x, u = torch.arange(12).reshape(4, 3), torch.arange(8).reshape(4, 2)
    return x.to(dtype), torch.tensor([[0, 2], [-1, 2]]), u.to(dtype)


def written(function, *arguments):
    """Run a function compiled by inductor, and return the result and the code."""
    with fresh_cache():
        result, code = run_and_get_code(compiled(function, "inductor"), *arguments)
    return result, "\n".join(code)


@pytest.mark.filterwarnings("ignore:Torchinductor does not support code generation for complex")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.complex64])
def test_each_op_is_a_call_of_the_core(dtype):
    function = complex_numbers if dtype.is_complex else every_operator
    expected = function(*operands(dtype))
    result, code = written(function, *operands(dtype))
    for one, other in zip(result, expected, strict=True):
        assert torch.equal(one, other)
    assert code.count(".default.core_call(") == len(expected)
    assert "torch.ops.gatherum.gather.default(" not in code


def test_gradients_enter_the_core_too():
    def function(x, i, u):
        return room.scatter_slices(room.gather(x, i[0]), i[1], u, 0, reduction="add", mode="wrap")

    x, i, u = operands()
    u = u.reshape(8, 1)[:2]
    leaves = [x.clone().requires_grad_() for _ in range(2)]
    function(leaves[0], i, u).backward(torch.ones(2, 3))
    with fresh_cache():
        call = compiled(function, "inductor")
        _, codes = run_and_get_code(lambda: call(leaves[1], i, u).backward(torch.ones(2, 3)))
    assert torch.equal(leaves[0].grad, leaves[1].grad)
    code = "\n".join(codes)
    assert code.count("scatter_slices.default.core_call(") == 2  # and the gather's gradient


def test_a_bad_index_is_an_index_error_in_a_graph():
    x, u = torch.ones(4, 3), torch.ones(2, 3)
    with fresh_cache():
        call = compiled(lambda x, i, u: room.scatter_slices(x, i, u, reduction="add"), "inductor")
        assert call(x, torch.tensor([0, 0]), u)[0, 0] == 3
        sentence = (
            r"^scatter_slices: index 4 is out of bounds for axis 0 of size 4 \(indices\[1\]\)$"
        )
        with pytest.raises(IndexError, match=sentence):
            call(x, torch.tensor([0, 4]), u)


def test_nothing_of_inductor_is_imported_before_a_graph_is_compiled(python):
    code = """
import sys, torch, gatherum.torch as room
room.gather(torch.ones(3), torch.tensor([1]))
torch.ops.gatherum.gather(torch.ones(3, device="meta"), torch.tensor([1], device="meta"))
print([name for name in sys.modules if name.startswith("torch._inductor.codegen")])
"""
    done = python(code)
    assert done.stdout == "[]\n", done.stderr


def test_an_inductor_without_the_table_is_unchanged(monkeypatch):
    monkeypatch.setitem(sys.modules, private.INDUCTOR, SimpleNamespace())
    inductor.register_ops()
    monkeypatch.delitem(sys.modules, private.INDUCTOR)
    inductor.register_ops()


def test_every_operator_is_written_as_a_call_of_the_core():
    assert inductor._added.keys() == {f"torch.ops.gatherum.{name}.default" for name in OPERATORS}


def test_code_of_version_0_1_0_runs():
    x, i, u = operands()
    result = torch.ops.gatherum.gather.default.door(x, i, 1, "wrap", True, 0, None)
    assert torch.equal(result, room.gather(x, i, 1, mode="wrap"))
    attributes = 1, "mean", False, "drop", True
    result = torch.ops.gatherum.scatter_slices.default.door(x, i[0], u, *attributes, None)
    named = {"reduction": "mean", "include_self": False, "mode": "drop"}
    assert torch.equal(result, room.scatter_slices(x, i[0], u, 1, **named))


def test_operands_on_a_device_go_through_the_op():
    lines = []
    node = SimpleNamespace(
        get_name=lambda: "buf0",
        get_kernel_name=lambda: "torch.ops.gatherum.gather.default",
        get_device=lambda: torch.device("cuda"),
        codegen_args=lambda: ["a", "b"],
        codegen_kwargs=lambda: ["axis=1", "bounds='raise'"],
    )
    write = inductor._added["torch.ops.gatherum.gather.default"]
    write(node, lines.append)
    node.get_device = lambda: torch.device("cpu")
    write(node, lines.append)
    assert lines == [
        "buf0 = torch.ops.gatherum.gather.default(a, b, axis=1, bounds='raise')",
        "buf0 = torch.ops.gatherum.gather.default.core_call("
        "'gather', a, b, None, 1, 'none', True, 'raise', True, 0, None)",
    ]
