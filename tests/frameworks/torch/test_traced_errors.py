"""Errors of compiled and exported graphs name the called function, as eager calls do."""

import functools

import pytest

torch = pytest.importorskip("torch", reason="install torch==2.13.0")

import gatherum  # noqa: E402
from gatherum.torch import torch_scatter  # noqa: E402
from samples import every  # noqa: E402

VALUES = torch.arange(12.0).reshape(4, 3)
ROWS = torch.tensor([0, 16, 3, 17])
ELEMENTS = torch.tensor([[0, 1, 2], [3, 4, 16], [0, 0, 0], [17, 1, 1]])
REDUCES = ("sum", "var", "argmax", "first", "nanfirst", "count", "any", "logsumexp", "nanmax")
TRANSFORMS = ("normalize", "centre", "softmax", "log_softmax")
SCATTERS = (
    "scatter", "scatter_max", "scatter_std", "scatter_softmax", "scatter_logsumexp", "segment_coo",
    "segment_min_coo", "gather_coo",
)  # fmt: skip


def on_groups(name):
    if name in TRANSFORMS:
        return lambda v, g: gatherum.groups.transform(v, g, name, size=16)
    fill = False if name == "any" else 0
    return lambda v, g: gatherum.groups.reduce(v, g, 16, name, fill_value=fill)


def scattered(name):
    function = getattr(torch_scatter, name)
    if name == "gather_coo":
        return function
    options = {"dim": 0} if name.startswith("scatter") else {}
    return functools.partial(function, dim_size=16, **options)


def message_of(call, *operands):
    with pytest.raises(IndexError) as caught:
        call(*operands)
    return str(caught.value)


def ways(call, *operands):
    def run(*tensors):
        return call(*tensors)

    class Module(torch.nn.Module):
        def forward(self, *tensors):
            return call(*tensors)

    torch.compiler.reset()
    yield torch.compile(run, backend="aot_eager", fullgraph=True)
    yield torch.export.export(Module(), operands).module()


@pytest.mark.parametrize("groups", [ROWS, ELEMENTS], ids=["rows", "elements"])
@pytest.mark.parametrize("name", every(3, [*REDUCES, *TRANSFORMS]))
def test_groups(name, groups):
    call = on_groups(name)
    function = "transform" if name in TRANSFORMS else "reduce"
    where = ", ".join(map(str, (groups >= 16).nonzero()[0].tolist()))
    expected = f"groups.{function}: group 16 is not in [0, 16) (groups[{where}])"
    assert message_of(call, VALUES, groups) == expected
    for way in ways(call, VALUES, groups):
        assert message_of(way, VALUES, groups) == expected


@pytest.mark.parametrize("index", [ROWS, ROWS[:, None], ELEMENTS], ids=["rows", "column", "all"])
@pytest.mark.parametrize("name", every(3, SCATTERS))
def test_functions_of_torch_scatter(name, index):
    call = scattered(name)
    eager = message_of(call, VALUES, index)
    assert eager.startswith(f"{name}: index ") and "indices" not in eager
    for way in ways(call, VALUES, index):
        assert message_of(way, VALUES, index) == eager


def test_out_and_gradients():
    def added(v, i):
        return torch_scatter.scatter(v, i, 0, torch.zeros(16, 3))

    expected = "scatter: index 16 is out of bounds for axis 0 of size 16 (index[1])"
    for way in (added, torch.compile(added, backend="aot_eager", fullgraph=True)):
        assert message_of(way, VALUES, ROWS) == expected
    way = torch.compile(on_groups("var"), backend="aot_eager", fullgraph=True)
    message = message_of(way, VALUES.clone().requires_grad_(), ROWS)
    assert message == "groups.reduce: group 16 is not in [0, 16) (groups[1])"


def test_code_of_inductor():
    way = torch.compile(on_groups("sum"), backend="inductor", fullgraph=True)
    message = message_of(way, VALUES, ROWS)
    assert message == "groups.reduce: group 16 is not in [0, 16) (groups[1])"


@pytest.mark.parametrize("name", ["scatter", "scatter_max"])
def test_dtypes(name):
    call = scattered(name)
    with pytest.raises(TypeError) as caught:
        call(VALUES, ROWS.float())
    expected = f"{name}: `index` must have an integer dtype, got float32"
    assert str(caught.value).startswith(expected)
    with pytest.raises(Exception, match=expected):
        next(ways(call, VALUES, ROWS.float()))(VALUES, ROWS.float())


def test_batches_name_the_function():
    with pytest.raises(IndexError) as caught:
        torch.func.vmap(on_groups("sum"))(VALUES[None], ROWS[None])
    assert str(caught.value).startswith("groups.reduce: group 16 is not in [0, 16) (groups[")
