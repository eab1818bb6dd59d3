"""The ops under torch's checks: opcheck, compiled graphs, exported programs."""

import io

import numpy as np
import pytest
from tensors import compiled, double, room, torch

import gatherum

ops = torch.ops.gatherum
INDICES = torch.tensor([[0, 2], [2, 2], [1, 0], [0, 0]])


def plain(*shape):
    return torch.randn(shape, dtype=torch.float64)


CALLS = {
    "gather": lambda: (double(3, 2), INDICES, -2),
    "gather_out": lambda: (plain(3, 2), INDICES[:, 0], plain(4, 2)),
    "gather_elements": lambda: (double(3, 2), INDICES, 0, "fill", True, 2.5),
    "gather_elements_out": lambda: (plain(3, 2), INDICES, plain(4, 2)),
    "gather_nd": lambda: (double(3, 2), INDICES[2:], 0, "wrap", False),
    "gather_nd_out": lambda: (plain(3, 2), INDICES[2:], plain(2)),
    "scatter_slices": lambda: (double(3, 2), INDICES[:, 0], double(4, 2), 0, "mul", False),
    "scatter_slices_": lambda: (plain(3, 2), INDICES[:, 0], plain(4, 2), 0, "max"),
    "scatter_slices_out": lambda: (plain(3, 2), INDICES[:, 0], plain(4, 2), plain(3, 2)),
    "scatter_elements": lambda: (double(3, 2), INDICES, double(4, 2), 0, "mean"),
    "scatter_elements_": lambda: (plain(3, 2), INDICES, plain(4, 2), 0, "add"),
    "scatter_elements_out": lambda: (plain(3, 2), INDICES, plain(4, 2), plain(3, 2)),
    "scatter_nd": lambda: (double(3, 2), INDICES[2:], double(1), 0, "max", True, "drop"),
    "scatter_nd_": lambda: (plain(3, 2), INDICES[2:], plain(2)),
    "scatter_nd_out": lambda: (plain(3, 2), INDICES[2:], plain(2), plain(3, 2), 0, "add"),
}


@pytest.mark.parametrize("name", CALLS)
def test_opcheck(name):
    torch.library.opcheck(getattr(ops, name).default, CALLS[name]())


def test_every_op_is_checked():
    from gatherum._model.operators import OPERATORS
    from gatherum.torch.library.ops import forms

    assert set(CALLS) == {name for operator in OPERATORS.values() for name in forms(operator)}


def both(x, i, u):
    return room.scatter_nd(x, i, u, reduction="add"), gatherum.gather(x, i[:, 0], mode="wrap")


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_one_graph_for_all_sizes(backend):
    seen = []

    def counting(graph, example_inputs):
        seen.append(graph)
        return torch._dynamo.lookup_backend(backend)(graph, example_inputs)

    function = compiled(both, backend=counting, dynamic=True)
    for n, m in ((4, 3), (7, 8), (9, 2), (6, 6)):
        x, i, u = torch.randn(n, 5), torch.randint(0, n, (m, 1)), torch.randn(m, 5)
        for result, expected in zip(function(x, i, u), both(x, i, u), strict=True):
            assert torch.equal(result, expected)
    assert len(seen) == 1


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_writing_in_a_graph(backend):
    def function(x, i, u):
        y = x * 2
        room.scatter_nd(y, i, u, reduction="add", out=y)
        z = torch.empty_like(x)
        room.scatter_nd(y, i, u, reduction="add", out=z)
        return y, z, room.gather(z, i[:, 0], out=torch.empty_like(u))

    x, i, u = torch.ones(4, 3), torch.tensor([[0], [0]]), torch.ones(2, 3)
    result = compiled(function, backend=backend, dynamic=True)(x, i, u)
    for one, other in zip(result, function(x, i, u), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_bad_index_in_a_graph_is_an_index_error(backend):
    function = compiled(lambda x, i: gatherum.gather(x, i) + 1, backend=backend)
    x = torch.ones(4, 3)
    with pytest.raises(
        IndexError, match=r"^gather: index 9 is out of bounds for axis 0 of size 4 "
    ):
        function(x, torch.tensor([0, 9]))
    assert torch.equal(function(x, torch.tensor([0, -4])), torch.full((2, 3), 2.0))


def test_wrong_shapes_in_a_graph_have_the_same_sentence():
    function = compiled(room.scatter_nd, backend="eager")
    with pytest.raises(Exception, match=r"scatter_nd: `updates` must have shape \(2, 3\), got"):
        function(torch.ones(4, 3), torch.tensor([[0], [0]]), torch.ones(2, 4))


def test_numbers_and_lists_in_a_graph():
    def function(x):
        more = room.scatter_nd(x, [[0], [2]], 1, reduction="add")
        return room.scatter_elements(more, torch.tensor([[1, 1, 1]]), 2.5, reduction="max")

    x = torch.zeros(4, 3)
    assert torch.equal(compiled(function)(x), function(x))
    with pytest.raises(Exception, match="`updates` must be"):
        compiled(lambda x: room.scatter_nd(x, [[0]], 1.5))(torch.zeros(3, dtype=torch.int64))
    assert compiled(lambda x: room.gather(x, []))(x).shape == (0, 3)


@pytest.mark.parametrize(
    ("name", "number"), [("uint8", -1), ("float16", 1e6), ("float8_e4m3fn", float("inf"))]
)
def test_numbers_that_do_not_fit_are_refused_as_they_are_eagerly(name, number):
    """`test_tensor_refusals.py` has more of them."""
    data, indices = torch.zeros(3).to(getattr(torch, name)), torch.tensor([0, 1])
    with pytest.raises(ValueError, match="`updates` must") as caught:
        room.scatter_slices(data, indices, number)

    class Scatter(torch.nn.Module):
        def forward(self, x):
            return room.scatter_slices(x, indices, number)

    with pytest.raises(ValueError, match="`updates` must") as exported:
        torch.export.export(Scatter(), (data,), strict=False)
    assert str(exported.value) == str(caught.value)
    with pytest.raises(Exception, match="`updates` must") as in_graph:
        compiled(Scatter())(data)
    assert str(caught.value) in str(in_graph.value)


@pytest.mark.parametrize(
    "updates", [[300, 1], np.array([300, 2]), (0, 1)], ids=["list", "array", "tuple"]
)
def test_updates_that_a_graph_would_convert_unchecked_are_refused(updates):
    x = torch.zeros(3, dtype=torch.uint8)
    with pytest.raises(Exception, match="`updates` must be a dense tensor, got a"):
        compiled(lambda x: room.scatter_slices(x, torch.tensor([0, 1]), updates))(x)


def test_gatherum_s_own_functions_in_a_graph(python):
    code = """
import torch, gatherum, sys
def f(x, i, u):
    y = gatherum.scatter_nd(x, i, u, reduction="add")
    return gatherum.gather_elements(gatherum.scatter_slices(y, [0], 1.0), i, mode="clip")
g = torch.compile(f, fullgraph=True, backend="aot_eager")
x, i, u = torch.ones(4, 3), torch.tensor([[0], [0]]), torch.ones(2, 3)
assert "gatherum.torch" not in sys.modules
print(torch.equal(g(x, i, u), f(x, i, u)))
"""
    done = python(code)
    assert done.stdout == "True\n", done.stderr


class Module(torch.nn.Module):
    def forward(self, x, i, u):
        return both(x, i, u)


def test_an_exported_program_takes_other_sizes():
    n, m = torch.export.Dim("n", min=2), torch.export.Dim("m", min=2)
    example = torch.randn(5, 3), torch.tensor([[0], [1], [0]]), torch.randn(3, 3)
    program = torch.export.export(Module(), example, dynamic_shapes=({0: n}, {0: m}, {0: m}))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    x, i, u = torch.randn(9, 3), torch.tensor([[8], [8]]), torch.randn(2, 3)
    for result, expected in zip(loaded(x, i, u), both(x, i, u), strict=True):
        assert torch.equal(result, expected)


def test_meta_and_fake_tensors_have_only_shapes():
    from torch._subclasses.fake_tensor import FakeTensorMode

    data, indices = (
        torch.empty(4, 3, device="meta"),
        torch.empty(5, dtype=torch.int64, device="meta"),
    )
    result = gatherum.gather(data, indices, axis=1)
    assert (result.shape, result.device.type) == ((4, 5), "meta")
    with pytest.raises(ValueError, match=r"^gather: `axis` must be in \[-2, 2\), got 2"):
        gatherum.gather(data, indices, axis=2)
    with FakeTensorMode() as mode:
        fake = torch.empty(4, 3), torch.zeros(5, dtype=torch.int64)
        assert room.gather(*fake, 1).shape == (4, 5)
        assert room.scatter_nd(fake[0], [[0]], 1.0, reduction="max").shape == (4, 3)
    assert gatherum.gather(mode.from_tensor(torch.ones(4, 3)), fake[1]).shape == (5, 3)


DIRECT = {
    "gather": (torch.ones(4, 3), INDICES[:, 0]),
    "gather_elements": (torch.ones(4, 2), INDICES),
    "gather_nd": (torch.ones(4, 3), INDICES),
    "scatter_slices": (torch.ones(4, 2), INDICES[:, 0], torch.rand(4, 2)),
    "scatter_elements": (torch.ones(4, 2), INDICES, torch.rand(4, 2)),
    "scatter_nd": (torch.ones(4, 3), INDICES, torch.rand(4)),
}


@pytest.mark.parametrize("op", DIRECT)
def test_a_function_compiled_itself(op):
    function, operands = getattr(gatherum, op), DIRECT[op]
    more = {"reduction": "add"} if len(operands) == 3 else {}
    whole = compiled(function)
    assert torch.equal(whole(*operands, **more), function(*operands, **more))
    named = dict(zip(("data", "indices", "updates"), operands, strict=False))
    assert torch.equal(whole(**named, **more), function(*operands, **more))


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace:UserWarning")
def test_a_function_compiled_itself_takes_arrays():
    torch._dynamo.reset()
    result = torch.compile(gatherum.gather, backend="eager")(np.arange(3.0), np.array([2, 0]))
    assert isinstance(result, np.ndarray)
    assert result.tolist() == [2, 0]


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "mean"])
def test_compiled_autograd(reduction):
    data, updates = torch.rand(4, 3), torch.rand(5, 3)

    def loss(data, updates):
        rows = gatherum.gather(updates, torch.tensor([4, 0, 0]))
        return (room.scatter_slices(data, [0, 2, 2], rows, reduction=reduction) ** 2).sum()

    gradients = []
    for enabled in (False, True):
        leaves = [t.clone().requires_grad_() for t in (data, updates)]
        result = loss(*leaves)
        torch._dynamo.reset()
        if enabled:
            compiler = torch.compile(backend="eager", fullgraph=True)
            with torch._dynamo.compiled_autograd._enable(compiler):
                result.backward()
        else:
            result.backward()
        gradients.append([leaf.grad for leaf in leaves])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_functionalize_tracks_writes():
    def function(x, i, u):
        y = x * 2
        room.scatter_nd(y, i, u, reduction="add", out=y)
        room.scatter_nd(x, i, u, reduction="add", out=x)
        return y, room.gather(y, i[:, 0], out=torch.empty_like(u))

    operands = torch.ones(4, 3), torch.tensor([[0], [0]]), torch.ones(2, 3)
    mine, theirs = ([t.clone() for t in operands] for _ in range(2))
    result = torch.func.functionalize(function)(*mine)
    for one, other in zip((*result, *mine), (*function(*theirs), *theirs), strict=True):
        assert torch.equal(one, other)


def test_only_written_tensors_are_marked_as_changed():
    data, out, indices = torch.zeros(4), torch.zeros(4), torch.tensor([0, 9])
    with pytest.raises(IndexError):
        room.scatter_slices(data, indices, 1.0, out=data)
    with pytest.raises(IndexError):
        room.scatter_slices(data, indices, 1.0, out=out)
    with pytest.raises(ValueError, match="must have shape"):
        room.scatter_slices(data, torch.tensor([0]), torch.ones(3), out=data)
    assert (data._version, out._version) == (0, 0)
    room.scatter_slices(data, indices, 1.0, mode="drop", out=data)
    assert data._version == 1
    two = torch.zeros(2)
    with pytest.raises(IndexError):
        room.gather(data, indices, out=two)
    assert two._version == 1  # its current value is unspecified
