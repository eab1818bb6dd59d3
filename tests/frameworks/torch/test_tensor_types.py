"""Non-plain tensors raise one message that names the operand and the remedy."""

import re

import numpy as np
import pytest
from tensors import room, torch
from torch import fx
from torch.masked import masked_tensor
from torch.nn.utils.rnn import pack_padded_sequence

import gatherum

# Torch warns that masked, nested and compressed tensors are prototypes, and that quantized ones
# will be removed.
OF_TORCH = (
    "The PyTorch API of",
    "Sparse CSR",
    "torch.quantize_per_tensor",
    ".* __torch_dispatch__",
)
pytestmark = [pytest.mark.filterwarnings(f"ignore:{text}:UserWarning") for text in OF_TORCH]
pytestmark.append(pytest.mark.slow)

DATA, ROWS, SOME = torch.arange(12.0).reshape(4, 3), torch.tensor([0, 2]), torch.ones(2, 3)
TUPLES, EACH = ROWS[:, None], torch.tensor([[0, 1, 1], [2, 0, 1]])
POINTERS = torch.tensor([0, 1, 2])


def of(name, data, indices, updates, src=None):
    """Return the operands of a function by name: `out` is the data of torch_scatter's functions."""
    if name in SEGMENTS:
        return {"src": updates, "indptr": indices}
    if name in FUNCTIONS:
        return {"src": updates, "index": indices, "out": data}
    return {"data": data, "indices": indices, "updates": updates} if "scatter" in name else {
        "data": data, "indices": indices,
    }  # fmt: skip


SIX = ("gather", "gather_elements", "gather_nd", "scatter_slices", "scatter_elements", "scatter_nd")
FUNCTIONS = ("scatter", "scatter_add", "scatter_sum", "scatter_mul", "scatter_mean", "scatter_max",
             "scatter_min")  # fmt: skip
SEGMENTS = ("segment_csr", "gather_csr")
PLAIN = {name: of(name, DATA, ROWS, SOME) for name in SIX}
PLAIN |= {name: {**PLAIN[name], "indices": EACH} for name in SIX if "elements" in name}
PLAIN |= {name: {**PLAIN[name], "indices": TUPLES} for name in SIX if name.endswith("nd")}
PLAIN |= {name: of(name, DATA.clone(), ROWS, SOME) for name in FUNCTIONS}
PLAIN |= {name: {"src": SOME, "indptr": POINTERS} for name in SEGMENTS}
SOME_OF_THEM = (*SIX, "scatter", "scatter_max", *SEGMENTS)
CASES = [(name, operand) for name in SOME_OF_THEM for operand in PLAIN[name]]


def call(name, operands):
    if name in FUNCTIONS:
        return getattr(room, name)(operands["src"], operands["index"], 0, out=operands["out"])
    return getattr(room, name)(*operands.values())


def nested(tensor, layout=torch.strided):
    return torch.nested.nested_tensor([tensor, tensor[:1]], layout=layout)


def quantized(tensor):
    return torch.quantize_per_tensor(tensor.float(), 1.0, 0, torch.quint8)


def packed(tensor):
    return pack_padded_sequence(tensor[None], torch.tensor([len(tensor)]), batch_first=True)


# The tensor, its name in the message, the remedy in the message, and whether that is sufficient.
KINDS = {
    "nested": (nested, "nested tensor", "call it for each of {}.unbind(), or pad by "
               "torch.nested.to_padded_tensor", False),
    "jagged": (lambda t: nested(t, torch.jagged), "nested tensor", "call it for each of "
               "{}.unbind(), or pad by torch.nested.to_padded_tensor", False),
    "sparse": (torch.Tensor.to_sparse, "tensor of layout sparse_coo", "write {}.to_dense()", True),
    "rows": (lambda t: (t if t.dim() > 1 else t[None]).to_sparse_csr(),
             "tensor of layout sparse_csr", "write {}.to_dense()", False),
    "masked": (lambda t: masked_tensor(t, torch.ones_like(t, dtype=torch.bool)), "MaskedTensor",
               "write {}.to_tensor(0) to fill what is masked", False),
    "packed": (packed, None, "write {}.data for its values", True),
    "quantized": (quantized, "quantized tensor", None, False),
    "proxy": (lambda t: fx.Proxy(fx.Graph().placeholder("x")), "torch.fx.Proxy",
              "call it in a function of yours that torch.fx.wrap marks", False),
    "linear": (lambda t: torch.nn.Linear(1, 1), "torch.Linear", "", False),
}  # fmt: skip


@pytest.mark.parametrize("tensor_type", KINDS)
@pytest.mark.parametrize(("name", "operand"), CASES)
def test_kinds(tensor_type, name, operand):
    make, result, instead, runs = KINDS[tensor_type]
    plain = PLAIN[name]
    odd = make(plain[operand])
    if tensor_type == "quantized":
        integers = operand in ("indices", "index", "indptr")
        instead = f"write {{}}.{'int_repr' if integers else 'dequantize'}()"
    if tensor_type == "linear" and operand not in ("data", "src", "out"):
        pytest.skip("a module is an object like any other")
    with pytest.raises(TypeError) as caught:
        call(name, {**plain, operand: odd})
    text = str(caught.value)
    if tensor_type == "packed":
        expected = f"{name}: `{operand}` must be one array, got a PackedSequence that holds a "
        expected += "torch.Tensor"
    else:
        expected = f"{name}: `{operand}` must be a dense tensor, got a {result}"
    advice = f"; {instead.format(operand)}" if instead else ""
    assert text == expected + advice
    if runs:
        written = eval(instead.format(operand).split()[1], {operand: odd})
        fresh = {key: value.clone() for key, value in plain.items()}
        again = call(name, {**fresh, operand: written})
        fresh = {key: value.clone() for key, value in plain.items()}
        assert str(again) == str(call(name, fresh))


@pytest.mark.parametrize("tensor_type", ["nested", "jagged", "masked", "sparse"])
@pytest.mark.parametrize("name", SIX)
def test_ops(tensor_type, name):
    make, result, _, _ = KINDS[tensor_type]
    operands = list(PLAIN[name].values())
    for place, operand in enumerate(PLAIN[name]):
        odd = [make(t) if i == place else t for i, t in enumerate(operands)]
        with pytest.raises(TypeError, match=rf"^{name}: `{operand}` must be a dense .* {result}; "):
            getattr(torch.ops.gatherum, name)(*odd)


@pytest.mark.parametrize(
    "tensor_type", ["nested", "jagged", "masked", "proxy", "sparse", "quantized"]
)
def test_plans(tensor_type):
    make, result, _, _ = KINDS[tensor_type]
    for function in (gatherum.plan, gatherum.explain):
        for operand in ("data", "indices", "updates"):
            operands = {**PLAIN["scatter_slices"], operand: make(PLAIN["scatter_slices"][operand])}
            with pytest.raises(
                TypeError, match=rf"^scatter_slices: `{operand}` must be a dense .*{result}"
            ):
                function("scatter_slices", *operands.values())
    with pytest.raises(
        TypeError, match=rf"^gather: `indices` must be a dense tensor, got a {result}"
    ):
        gatherum.index_report("gather", DATA, make(ROWS))


def test_lists_of_tensors():
    def refused(name, operand, container="a list"):
        text = f"{name}: `{operand}` must be one array, got {container} that holds a torch.Tensor; "
        return pytest.raises(
            TypeError, match=f"^{re.escape(text)}write torch.stack\\({operand}\\)$"
        )

    lists = [DATA[0], DATA[1]]
    for data in (lists, tuple(lists)):
        container = f"a {type(data).__name__}"
        for function in (gatherum.gather, room.gather):
            with refused("gather", "data", container):
                function(data, ROWS)
        with refused("scatter_slices", "updates", container):
            gatherum.scatter_slices(DATA, ROWS, data)
        with refused("scatter_slices", "updates", container):
            gatherum.scatter_slices(DATA.numpy(), ROWS.numpy(), data)
    assert torch.equal(gatherum.gather(torch.stack(lists), torch.tensor([0])), DATA[:1])
    with refused("gather", "out"):
        gatherum.gather(DATA, ROWS, out=lists)
    with refused("scatter", "src"):
        room.scatter(lists, ROWS, 0)
    with refused("scatter", "index"):
        room.scatter(SOME, [ROWS[0], ROWS[1]], 0)
    with refused("scatter", "out"):
        room.scatter(SOME, ROWS, 0, out=lists)
    with refused("segment_csr", "indptr"):
        room.segment_csr(SOME, list(POINTERS))
    with pytest.raises(TypeError, match=r"torch\.stack\(tensors, -1\), makes index tuples$"):
        gatherum.gather_nd(DATA, [ROWS, ROWS])


def test_objects_that_are_not_arrays():
    for value, advice in (
        (None, ""), ("text", ""), (torch.float32, ""), (object(), ""),
        ([1.0, 2.0], "; write torch.as_tensor(data)"),
        (np.ones(2), "; write torch.as_tensor(data)"),
    ):  # fmt: skip
        with pytest.raises(TypeError) as caught:
            room.gather(value, ROWS)
        message = "torch.dtype" if value is torch.float32 else type(value).__name__
        assert (
            str(caught.value) == f"gather: `data` must be a dense tensor, got a {message}{advice}"
        )
    with pytest.raises(
        TypeError, match=r"^scatter: `index` must have an integer dtype, got float64; write "
    ):
        room.scatter(SOME, [0.5, 1.0], 0)


def test_tensors_with_numpy_arrays():
    array, proxy = DATA.numpy(), KINDS["proxy"][0](None)
    with pytest.raises(
        TypeError, match=r"^gather: `indices` must be a NumPy array, got a torch.Proxy$"
    ):
        gatherum.gather(array, proxy)
    with pytest.raises(TypeError, match=r"^gather: `indices` must not be a masked array: its mask"):
        gatherum.gather(array, KINDS["masked"][0](ROWS))
    with pytest.raises(TypeError, match=r"write indices\.numpy\(force=True\)$"):
        gatherum.gather(array, ROWS)


def test_fill_values():
    def filled(fill):
        return gatherum.gather(DATA, ROWS, mode="fill", fill_value=fill)

    with pytest.raises(
        ValueError, match=r"^gather: `fill_value` must convert exactly to the dtype"
    ):
        filled(torch.ones(2))
    with pytest.raises(
        TypeError, match=r"^gather: `fill_value` must be a dense tensor, got a nested"
    ):
        filled(nested(ROWS))
    with pytest.raises(
        RuntimeError, match=r"^gather: the values of `fill_value` cannot be read on "
    ):
        filled(torch.ones((), device="meta"))
    with pytest.raises(
        RuntimeError, match=r"^gather: `fill_value` must be one number for the whole"
    ):
        torch.func.vmap(filled)(torch.ones(2))
    assert torch.equal(filled(torch.tensor(2.0)), DATA[ROWS])


def test_a_marked_function_takes_proxies():
    def model(data, rows):
        return take(data, rows) + 1

    assert torch.equal(fx.symbolic_trace(model)(DATA, ROWS), DATA[ROWS] + 1)


@fx.wrap
def take(data, rows):
    return gatherum.gather(data, rows)


def test_meta():
    meta, nowhere = DATA.to("meta"), ROWS.to("meta")
    assert gatherum.gather(meta, nowhere).shape == (2, 3)
    with pytest.raises(
        TypeError, match=r"^gather: `indices` must have values that can be read here"
    ):
        gatherum.gather(DATA, nowhere)
    with pytest.raises(TypeError, match=r"write indices\.to\(data\.device\)$"):
        gatherum.gather(meta, ROWS)
    assert gatherum.gather(meta, ROWS.to(meta.device)).shape == (2, 3)
    src, pointers = SOME.to("meta"), POINTERS.to("meta")
    for name in FUNCTIONS:
        with pytest.raises(RuntimeError) as caught:
            getattr(room, name)(src, nowhere, 0)
        text = f"{name}: the values of `index` cannot be read on the device meta; give `dim_size`"
        assert str(caught.value) == text
    for function in (room.segment_csr, room.gather_csr):
        with pytest.raises(
            RuntimeError, match=r"_csr: the values of `indptr` cannot be read on the"
        ):
            function(src, pointers)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sizes_inside_vmap(name):
    function, src = getattr(room, name), torch.stack([SOME, SOME + 1])
    index = torch.stack([ROWS, ROWS + 1])
    text = f"{name}: the values of `index` cannot be read inside torch.func.vmap; give `dim_size`"
    for of_src, source in ((0, src), (None, SOME)):
        with pytest.raises(RuntimeError) as caught:
            torch.func.vmap(lambda s, i: function(s, i, 0), (of_src, 0))(source, index)
        assert str(caught.value) == text
    with pytest.raises(RuntimeError, match=r"inside torch\.func\.vmap; give `dim_size`$"):
        torch.func.vmap(torch.func.vmap(lambda s, i: function(s, i, 0), (None, 0)), (0, None))(
            src, index
        )
    batch = torch.func.vmap(lambda s, i: function(s, i, 0, dim_size=4))(src, index)
    one = function(src[1], index[1], 0, dim_size=4)
    for result, expected in (
        zip(batch, one, strict=True) if isinstance(one, tuple) else [(batch, one)]
    ):
        assert torch.equal(result[1], expected)
    shared = torch.func.vmap(lambda s: function(s, ROWS, 0))(src)
    assert (shared[0] if isinstance(shared, tuple) else shared).shape == (2, 3, 3)
    with pytest.raises(
        RuntimeError, match=rf"^{name}: `out` cannot be given inside torch.func.vmap"
    ):
        torch.func.vmap(lambda s, o: function(s, ROWS, 0, out=o))(src, torch.zeros(2, 3, 3))


def test_segments_inside_vmap():
    src, pointers = torch.stack([SOME, SOME + 1]), torch.stack([POINTERS, POINTERS])
    for function in (room.segment_csr, room.gather_csr):
        with pytest.raises(RuntimeError) as caught:
            torch.func.vmap(function)(src, pointers)
        assert str(caught.value) == (
            f"{function.__name__}: the values of `indptr` cannot be read inside torch.func.vmap; "
            "it takes a batch itself, with dimensions of `indptr` in front"
        )
        assert torch.equal(function(src, pointers)[1], function(src[1], POINTERS))


def test_plans_inside_vmap():
    """A plan sees one member of the batch, and no values."""
    seen = []

    def look(data):
        seen.append(gatherum.plan("gather", data, ROWS).shape)
        seen.append(gatherum.explain("gather", data, ROWS).plan.shape)
        return data

    torch.func.vmap(look)(torch.stack([DATA, DATA]))
    assert seen == [(2, 3), (2, 3)]
    with pytest.raises(TypeError, match=r"^gather: `indices` must have values that can be read"):
        torch.func.vmap(lambda rows: gatherum.index_report("gather", DATA, rows))(EACH)


class Plain(torch.Tensor):
    """A subclass that adds nothing."""


class Odd(torch.Tensor):
    """A subclass with rules only for the ops that create it."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    def __repr__(self):
        return "Odd"

    @classmethod
    def __torch_dispatch__(cls, function, kinds, arguments=(), named=None):
        if function is torch.ops.gatherum.gather_nd.default:
            return arguments[0].inner[arguments[1][:, 0]]
        return NotImplemented


@pytest.mark.parametrize("name", SIX)
def test_subclasses(name):
    operands = list(PLAIN[name].values())
    for place, operand in enumerate(PLAIN[name]):
        sub = [t.as_subclass(Plain) if i == place else t for i, t in enumerate(operands)]
        assert torch.equal(call(name, dict(enumerate(sub))), call(name, PLAIN[name]))
        odd = [Odd(t) if i == place else t for i, t in enumerate(operands)]
        if name == "gather_nd" and place == 0:
            assert torch.equal(gatherum.gather_nd(*odd), DATA[ROWS])
            continue
        text = f"{name}: `{operand}` must be a dense tensor, got a Odd; make a torch.Tensor of it"
        for function in (getattr(gatherum, name), getattr(torch.ops.gatherum, name)):
            with pytest.raises(TypeError) as caught:
                function(*odd)
            assert str(caught.value) == text


def test_distributed_tensors():
    distributed = pytest.importorskip(
        "torch.distributed.tensor", reason="torch has no distribution"
    )
    dist = torch.distributed
    if not dist.is_available() or dist.is_initialized():
        pytest.skip("torch has no distribution, or uses it")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        mesh = distributed.init_device_mesh("cpu", (1,))
        spread = [distributed.distribute_tensor(t, mesh) for t in (DATA, ROWS, SOME)]
        advice = (
            "got a DTensor; write {0}.full_tensor(), or {0}.to_local() for the part that is here"
        )
        for place, operand in enumerate(("data", "indices", "updates")):
            some = [spread[i] if i == place else t for i, t in enumerate((DATA, ROWS, SOME))]
            with pytest.raises(TypeError, match=re.escape(advice.format(operand))):
                gatherum.scatter_slices(*some)
        with pytest.raises(TypeError, match=re.escape(advice.format("src"))):
            room.scatter(spread[2], spread[1], 0, dim_size=4)
        assert torch.equal(gatherum.gather(spread[0].full_tensor(), ROWS), DATA[ROWS])
    finally:
        dist.destroy_process_group()
