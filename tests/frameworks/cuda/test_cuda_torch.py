"""Tensors on a CUDA device: the ops' kernels for them, run on tensors in host memory."""

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", minversion="2.10", reason="install torch to test tensors: pip install 'torch>=2.10'"
)

from types import SimpleNamespace  # noqa: E402

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import gatherum  # noqa: E402
import gatherum.torch as room  # noqa: E402
from gatherum._model.call import Attributes  # noqa: E402
from gatherum._model.modes import MODES  # noqa: E402
from gatherum._model.operators import OPERATORS as ROWS  # noqa: E402
from gatherum._model.reductions import FOLDS  # noqa: E402
from gatherum.cuda import device_views  # noqa: E402
from gatherum.cuda.device import Pairs, Widths  # noqa: E402
from gatherum.torch import cuda, namespace  # noqa: E402
from gatherum.torch.autograd import recorded_functions  # noqa: E402
from gatherum.torch.functions import aggregation, elementary  # noqa: E402
from gatherum.torch.library import ops  # noqa: E402
from strategies import OPERATORS, SCATTERS, same_bits  # noqa: E402

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.filterwarnings(r"ignore:`torch\.jit\.script:DeprecationWarning"),
]


def example(op, dtype=torch.float32):
    """Return data, indices with duplicates and out-of-bounds values, and updates."""
    data = torch.arange(12).reshape(4, 3).to(dtype)
    index = torch.tensor([[0, 3, 1], [3, -1, 3]])
    if op.endswith("_nd"):
        return data, index[:, :, None], torch.arange(18).reshape(2, 3, 3).to(dtype)
    if op.endswith("_elements"):
        return data, index, torch.arange(6).reshape(2, 3).to(dtype)
    return data, index, torch.arange(18).reshape(2, 3, 3).to(dtype)


def call(op, *operands, functions=None, **more):
    operands = operands if op in SCATTERS else operands[:2]
    if functions is None:
        attributes = (0, *more.values())
        return ops.overload(op)(*operands, *attributes)
    return getattr(functions, op)(*operands, **more)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.complex64])
@pytest.mark.parametrize("op", OPERATORS)
def test_device_and_host_kernels_return_the_same_bits(on_core, as_cuda, op, dtype):
    operands = example(op, dtype)
    if dtype.is_complex:  # these always use the ops
        expected = torch.from_numpy(call(op, *(t.numpy() for t in operands), functions=gatherum))
    else:
        expected = call(op, *operands, functions=room)
    assert as_cuda == []
    result = call(op, *operands)
    assert as_cuda == [op]
    assert result.dtype == dtype
    assert torch.equal(result, expected)


@pytest.mark.slow
@pytest.mark.parametrize("reduction", FOLDS)
@pytest.mark.parametrize("op", SCATTERS)
def test_the_kernels_themselves(on_shim, as_cuda, op, reduction):
    operands = example(op)
    expected = call(op, *operands, functions=room, reduction=reduction)
    assert torch.equal(call(op, *operands, reduction=reduction), expected)


@pytest.mark.parametrize("op", SCATTERS)
def test_forms_that_write(on_core, as_cuda, op):
    data, index, updates = example(op)
    expected = call(op, data, index, updates, functions=room, reduction="add")
    out = torch.full((3, 4), -1.0).T
    getattr(torch.ops.gatherum, f"{op}_out")(data, index, updates, out, 0, "add")
    assert torch.equal(out, expected)
    getattr(torch.ops.gatherum, f"{op}_")(data, index, updates, 0, "add")
    assert torch.equal(data, expected)
    assert data._version == 1


def test_out_may_not_share_memory(machine, as_cuda, monkeypatch):
    monkeypatch.setattr("gatherum.cuda.plan_launches.run", lambda *_: pytest.fail("was run"))
    data, index, updates = example("scatter_slices")
    with pytest.raises(ValueError, match=r"^scatter_slices: `out` must not share memory with `d"):
        torch.ops.gatherum.scatter_slices_out(data[:3], index.clamp(0, 2), updates, data[1:], 0)
    with pytest.raises(ValueError, match=r"^gather: `out` must not share memory with `data`$"):
        torch.ops.gatherum.gather_out(data[:2], torch.tensor([0, 1]), data[1:3], 0)


@pytest.mark.slow
@pytest.mark.parametrize("op", OPERATORS)
def test_an_invalid_index_raises_the_sentence_and_writes_nothing(on_shim, as_cuda, op):
    data, index, updates = example(op)
    index[1, 1] = 9
    with pytest.raises(IndexError) as expected:
        call(op, data, index, updates, functions=room)
    before = data.clone()
    with pytest.raises(IndexError) as caught:
        call(op, data, index, updates)
    assert str(caught.value) == str(expected.value)
    if op in SCATTERS:
        with pytest.raises(IndexError):
            getattr(torch.ops.gatherum, f"{op}_")(data, index, updates)
    assert torch.equal(data, before)


def test_fill_values(on_core, as_cuda):
    data = torch.arange(4, dtype=torch.bfloat16)
    result = torch.ops.gatherum.gather(data, torch.tensor([9, 1]), 0, "fill", True, 2.5)
    assert result.tolist() == [2.5, 1.0]


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "mean"])
@pytest.mark.parametrize("op", OPERATORS)
def test_gradients(on_core, as_cuda, op, reduction):
    if op not in SCATTERS and reduction != "none":
        return
    data, index, updates = example(op, torch.float64)
    data, updates = ((t + torch.rand_like(t)).requires_grad_() for t in (data, updates))
    if op in SCATTERS:
        assert torch.autograd.gradcheck(
            lambda data, updates: call(op, data, index, updates, reduction=reduction),
            (data, updates), check_forward_ad=True,
        )  # fmt: skip
    else:
        assert torch.autograd.gradcheck(lambda data: call(op, data, index), (data,))
    assert len(as_cuda) > 3


@pytest.mark.parametrize("op", OPERATORS)
def test_shapes_alone_on_a_cuda_device(op):
    with FakeTensorMode() as mode:
        operands = [mode.from_tensor(t) for t in example(op)]
        operands = [torch.empty_like(t, device="cuda") for t in operands]
        result = call(op, *operands)
        assert (result.device.type, result.dtype) == ("cuda", torch.float32)
        assert result.shape == call(op, *example(op), functions=room).shape
        plan = gatherum.plan(op, *(operands if op in SCATTERS else operands[:2]))
        assert plan.device == "cuda"
        assert call(op, *operands, functions=gatherum).device.type == "cuda"


def test_derivatives_on_a_device_do_not_ask_twice_whether_indices_are_valid():
    with FakeTensorMode():
        data, index = torch.empty(4, 3, device="cuda"), torch.empty(5, dtype=int, device="cuda")
        for mode in MODES:
            attributes = Attributes("scatter_slices", mode=mode)
            destinations = recorded_functions._destinations(index, attributes, data.shape)
            expected = {"raise": "drop", "fill": "drop"}.get(mode, mode)
            assert destinations.attributes.mode == expected
        attributes = Attributes("scatter_slices")
        destinations = recorded_functions._destinations(torch.zeros(2, dtype=int), attributes, (4,))
        assert destinations.attributes.mode == "raise"


def test_two_devices_are_named():
    with FakeTensorMode():
        data, index = torch.empty(4, 3, device="cuda"), torch.empty(5, dtype=int)
        with pytest.raises(TypeError) as caught:
            gatherum.gather(data, index)
    assert str(caught.value) == (
        "gather: `indices` must be on the device of `data`, cuda:0, got cpu; write "
        "indices.to(data.device)"
    )


def test_tensors_of_the_host_are_none_of_this_room():
    with pytest.raises(TypeError) as caught:
        gatherum.cuda.gather(torch.arange(3.0), [0])
    assert str(caught.value) == (
        "gather: `data` must be an array on a CUDA device, of torch, CuPy or with "
        "__cuda_array_interface__ or __dlpack__, got Tensor on cpu"
    )


def test_tensors_of_rocm_are_refused(as_cuda, monkeypatch):
    monkeypatch.setattr(torch.version, "hip", "7.1.25424")
    with pytest.raises(TypeError) as caught:
        call("gather", *example("gather"))
    assert str(caught.value) == (
        "gather: `data` must be on an NVIDIA GPU, got a tensor of torch for ROCm 7.1.25424, which "
        'calls AMD\'s devices "cuda", too; write data.cpu()'
    )


@pytest.mark.parametrize("widths", [(4, 4), (4, 8), (8, 4)])
def test_the_sort_is_stable(as_cuda, widths):
    random = np.random.default_rng(3)
    keys = random.integers(0, 5, 100).astype(f"u{widths[0]}")
    payload = np.arange(100).astype(f"u{widths[1]}")
    memory = [cuda._Scratch(torch.from_numpy(a.view(np.uint8).copy())) for a in (keys, payload)]
    result = cuda.FRAMEWORK.sort(Pairs(*memory, 100, Widths(*widths, 3)), 0, 40)
    order = np.argsort(keys, kind="stable")
    for each, expected in zip(result[:2], (keys[order], payload[order]), strict=True):
        assert each.memory.numpy().tobytes() == expected.tobytes()


def test_cub_sorts_more_keys_than_torch_can(monkeypatch):
    asked = []
    monkeypatch.setattr(
        cuda.cub, "sort_with_cub", lambda *arguments: asked.append(arguments) or "sorted"
    )
    monkeypatch.setattr(cuda, "_MOST_SORTED", 3)
    memory = [cuda._Scratch(torch.zeros(16, dtype=torch.uint8)) for _ in range(2)]
    pairs = Pairs(*memory, 4, Widths(4, 4, 3))
    assert cuda.FRAMEWORK.sort(pairs, 0, 40) == "sorted"
    assert asked == [(cuda.FRAMEWORK, pairs, 0, 40)]


@pytest.mark.parametrize("is_installed", [True, False])
def test_cub_sorts_if_it_is_installed(is_installed, monkeypatch):
    monkeypatch.setattr(cuda.cub, "sort_with_cub", lambda *_: "sorted")
    monkeypatch.setattr(cuda.cub, "is_available", lambda: is_installed)
    memory = [cuda._Scratch(torch.zeros(16, dtype=torch.uint8)) for _ in range(2)]
    result = cuda.FRAMEWORK.sort(Pairs(*memory, 4, Widths(4, 4, 3)), 0, 40)
    assert (result == "sorted") == is_installed


def test_without_cub_the_framework_sorts(monkeypatch):
    def missing():
        raise ImportError

    monkeypatch.setattr(cuda.cub, "_compute", missing)
    cuda.cub.is_available.cache_clear()
    assert not cuda.cub.is_available()
    cuda.cub.is_available.cache_clear()


def test_the_default_stream_has_a_distinct_number(monkeypatch):
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: SimpleNamespace(cuda_stream=0))
    assert cuda.FRAMEWORK.stream(0, ()) == 1


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_inductor_keeps_the_ops_out_of_its_graphs(row):
    for name in ops.forms(row):
        assert torch.Tag.cudagraph_unsafe in ops.overload(name).tags


def test_the_framework_has_every_member_of_the_protocol():
    asked = [name for name in vars(device_views.DeviceFramework) if name[0] != "_"]
    assert {"view", "stream", "empty", "allocate", "sort", "keep"} <= set(asked)
    assert [name for name in asked if not hasattr(cuda.FRAMEWORK, name)] == []


def test_aggregate_uses_the_dispatcher_only_if_it_has_an_effect(on_core, as_cuda, monkeypatch):
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            return op(*args, **(kwargs or {}))

    names = []
    monkeypatch.setattr(aggregation, "overload", lambda name: names.append(name) or overload(name))
    overload, index = ops.overload, torch.tensor([3, 0, 3])

    def dispatches(data):
        names.clear()
        result = gatherum.aggregate(data, index, index, 4, "add", mode="clip")
        values = data.detach().resolve_conj().numpy()
        host = gatherum.aggregate(values, index.numpy(), index.numpy(), 4, "add", mode="clip")
        assert same_bits(result.detach().numpy(), host)
        return len(names) > 0

    data = torch.complex(torch.arange(8.0), torch.arange(8.0) + 1).reshape(4, 2)
    assert not dispatches(data)
    assert dispatches(data.conj())
    assert dispatches(data.requires_grad_())
    with Mode():
        assert dispatches(data.detach())


def test_softmax_uses_the_dispatcher_only_if_it_has_an_effect(on_core, as_cuda, monkeypatch):
    names, overload = [], ops.overload
    monkeypatch.setattr(namespace, "overload", lambda name: names.append(name) or overload(name))
    monkeypatch.setattr(cuda, "map_values", elementary._on_cpu)
    values, groups = torch.arange(8.0).reshape(4, 2), torch.tensor([3, 0, 3, 1])

    def dispatches(values):
        names.clear()
        result = gatherum.groups.transform(values, groups, "softmax", size=4)
        host = gatherum.groups.transform(values.detach().numpy(), groups.numpy(), "softmax", size=4)
        assert same_bits(result.detach().numpy(), host)
        return len(names) > 0

    assert not dispatches(values)
    assert dispatches(values.requires_grad_())


def test_an_op_that_is_called_itself_names_two_devices(as_cuda):
    data, index, _ = example("gather")
    attributes = ops.gather_attributes("gather")
    with pytest.raises(TypeError, match=r"^gather: `indices` must have values that can be read"):
        cuda.run(attributes, data, index.to("meta"), None, 0, None)
    with pytest.raises(TypeError, match=r"^gather: `data` must be a dense tensor, got a tensor of"):
        cuda.run(attributes, data.to_sparse(), index, None, 0, None)
