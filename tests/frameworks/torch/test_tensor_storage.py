"""Tensors that reach past the end of their storage raise before any of their values are read.

``untyped_storage().resize_`` makes a storage smaller than its tensors. Torch does not check that
again: functions of Torch read and write out of bounds.
"""

import numpy as np
import pytest
from tensors import room, torch

import gatherum
from gatherum._system import native
from gatherum.torch import dlpack

DATA, SOME = torch.arange(12.0).reshape(4, 3), torch.ones(2, 3)
ROWS = torch.tensor([0, 2])
OPERANDS = {
    "gather": (DATA, ROWS),
    "gather_elements": (DATA, torch.tensor([[0, 1, 1], [2, 0, 1]])),
    "gather_nd": (DATA, ROWS[:, None]),
    "scatter_slices": (DATA, ROWS, SOME),
    "scatter_elements": (DATA, torch.tensor([[0, 1, 1], [2, 0, 1]]), SOME),
    "scatter_nd": (DATA, ROWS[:, None], SOME),
}
NAMES = ("data", "indices", "updates")
CASES = [(op, place) for op, operands in OPERANDS.items() for place in range(len(operands))]


def shrunk(tensor, nbytes=8):
    """Return a copy whose storage has only a few bytes left."""
    copy = tensor.clone()
    copy.untyped_storage().resize_(nbytes)
    return copy


def shrunk_operands(op, place, change=shrunk):
    """Return the operands of a call, one of which is shrunk."""
    return [change(t) if i == place else t.clone() for i, t in enumerate(OPERANDS[op])]


def refused(op, operand):
    return pytest.raises(ValueError, match=rf"^{op}: `{operand}` must lie in its storage, which")


@pytest.mark.parametrize(("op", "place"), CASES)
def test_each_operand_of_each_function(op, place):
    operands, more = shrunk_operands(op, place), {"reduction": "mul"} if op.startswith("s") else {}
    for function in (getattr(gatherum, op), getattr(room, op)):
        with refused(op, NAMES[place]):
            function(*operands)
        with refused(op, NAMES[place]):
            function(*operands, **more, mode="drop")
    assert torch.equal(getattr(gatherum, op)(*OPERANDS[op]), getattr(room, op)(*OPERANDS[op]))


@pytest.mark.parametrize(("op", "place"), CASES)
def test_each_operand_of_each_op(op, place):
    operands = shrunk_operands(op, place)
    for name in (op, f"{op}_out", f"{op}_")[: 3 if op.startswith("s") else 2]:
        out = [torch.zeros(2, 3)] if op.startswith("g") else [torch.zeros(4, 3)]
        with refused(op, NAMES[place]):
            getattr(torch.ops.gatherum, name)(*operands, *(out if name.endswith("_out") else []))


@pytest.mark.parametrize(("op", "place"), CASES)
def test_plans(op, place):
    for function in (gatherum.plan, gatherum.explain):
        with refused(op, NAMES[place]):
            function(op, *shrunk_operands(op, place))
    if place < 2:
        with refused(op, NAMES[place]):
            gatherum.index_report(op, *shrunk_operands(op, place)[:2])


@pytest.mark.parametrize("op", OPERANDS)
def test_out(op):
    operands = OPERANDS[op]
    out = shrunk(torch.zeros(4, 3) if op.startswith("s") else torch.zeros(2, 3))
    for function in (getattr(gatherum, op), getattr(room, op)):
        with refused(op, "out"):
            function(*operands, out=out)
    with refused(op, "out"):
        getattr(torch.ops.gatherum, f"{op}_out")(*operands, out)
    conjugate = torch.zeros(out.shape, dtype=torch.complex64)
    complex_operands = [t if t.dtype == torch.int64 else t.to(torch.complex64) for t in operands]
    with refused(op, "out"):
        getattr(gatherum, op)(*complex_operands, out=shrunk(conjugate).conj())
    if op.startswith("s"):
        data = shrunk(operands[0])
        with pytest.raises(ValueError, match=r"must lie in its storage"):
            getattr(gatherum, op)(data, *operands[1:], out=data)


@pytest.mark.parametrize(("op", "place"), CASES)
def test_gradients_and_transforms(op, place):
    operands = shrunk_operands(op, place)
    function = getattr(gatherum, op)
    wanted = 0 if op.startswith("g") or place == 2 else 2
    tracked = [t.requires_grad_() if i == wanted else t for i, t in enumerate(operands)]
    with refused(op, NAMES[place]):
        function(*tracked)
    with refused(op, NAMES[place]):
        torch.func.grad(lambda x: function(*operands[:wanted], x, *operands[wanted + 1 :]).sum())(
            operands[wanted].detach()
        )
    batch = [shrunk(torch.stack([t, t])) if i == place else t for i, t in enumerate(OPERANDS[op])]
    dims = tuple(0 if i == place else None for i in range(len(batch)))
    for one in (function, getattr(torch.ops.gatherum, op)):
        with refused(op, NAMES[place]):
            torch.func.vmap(one, dims)(*batch)


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "mean"])
@pytest.mark.parametrize("operand", ["data", "indices", "updates"])
def test_memory_that_is_freed_before_the_backward_pass(reduction, operand):
    """Sharded training frees parameters in this way."""
    data, rows, some = DATA.clone(), ROWS.clone(), SOME.clone()
    kept = {"data": data, "indices": rows, "updates": some}[operand]
    some.requires_grad_()
    result = gatherum.scatter_slices(data, rows, some, reduction=reduction)
    with torch.no_grad():
        kept.untyped_storage().resize_(0)
    if reduction in ("add", "mean") and operand != "indices":  # their values are not needed
        assert torch.autograd.grad(result.sum(), some)[0].shape == some.shape
        return
    with pytest.raises(ValueError, match=rf"`{operand}` must lie in its storage, which has 0 byte"):
        torch.autograd.grad(result.sum(), some)


def test_conjugates_and_negatives_that_torch_would_copy():
    for view in (lambda z: z.conj(), lambda z: z.conj().imag):
        lazy = view(torch.zeros(4, 3, dtype=torch.complex64))
        lazy.untyped_storage().resize_(8)
        with refused("gather", "data"):
            gatherum.gather(lazy, ROWS)
        with refused("gather", "data"):
            torch.ops.gatherum.gather(lazy, ROWS)


def test_fill_values():
    with refused("gather", "fill_value"):
        gatherum.gather(DATA, ROWS, mode="fill", fill_value=shrunk(torch.tensor(1.0), 0))


FUNCTIONS = ("scatter", "scatter_add", "scatter_mul", "scatter_mean", "scatter_max", "scatter_min")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_torch_scatter(name):
    function, out = getattr(room, name), torch.zeros(3, 3)
    for src, index, more, operand in (
        (shrunk(SOME), ROWS, {}, "src"),
        (SOME, shrunk(ROWS), {}, "index"),
        (SOME, shrunk(ROWS), {"dim_size": 3}, "index"),
        (SOME, ROWS, {"out": shrunk(out)}, "out"),
    ):
        with refused(name, operand):
            function(src, index, 0, **more)


def test_segments():
    pointers = torch.tensor([0, 1, 2])
    for name in ("segment_csr", "gather_csr"):
        function = getattr(room, name)
        with refused(name, "src"):
            function(shrunk(SOME), pointers)
        with refused(name, "indptr"):
            function(SOME, shrunk(pointers))
        with refused(name, "out"):
            function(SOME, pointers, out=shrunk(SOME))


def test_tensors_inside_their_storage():
    """The last byte counts, with steps and offsets; a tensor without elements needs none."""
    whole, first = torch.arange(20.0), torch.tensor([0])
    lines = whole.as_strided((3, 4), (4, 1)), whole.as_strided((3, 4), (4, 1), 1)
    inside = whole[:12], whole[2:12:3], whole[11:12].expand(50, 4), whole[20:], lines[0]
    outside = whole[:13], whole[12:], whole[3:13:3], lines[1]
    whole.untyped_storage().resize_(4 * 12)
    for tensor in inside:
        assert native.first_outside_storage((None, tensor)) == -1
        if len(tensor):
            assert torch.equal(gatherum.gather(tensor, first), tensor[:1])
    for tensor in outside:
        assert native.first_outside_storage((None, tensor, tensor)) == 1
        with refused("gather", "data"):
            gatherum.gather(tensor, first)
    empty = shrunk(torch.zeros(0, 3), 0)
    assert gatherum.gather(empty, torch.zeros(0, dtype=torch.int64)).shape == (0, 3)
    assert gatherum.gather(whole[:0], torch.zeros(0, dtype=torch.int64)).shape == (0,)


def test_the_message_counts_bytes_of_the_storage():
    tensor = torch.arange(20.0)
    part = tensor[4:].reshape(4, 4)
    tensor.untyped_storage().resize_(70)
    with pytest.raises(ValueError) as caught:
        gatherum.gather(part, ROWS)
    assert str(caught.value) == (
        "gather: `data` must lie in its storage, which has 70 bytes, got a tensor that reaches to "
        "byte 80; give the storage its old size by untyped_storage().resize_"
    )
    tensor.untyped_storage().resize_(80)
    assert gatherum.gather(part, ROWS).shape == (2, 4)


def test_other_dtypes():
    for dtype in (torch.bool, torch.uint8, torch.bfloat16, torch.float8_e5m2, torch.complex128):
        data = torch.zeros(4, 3, dtype=dtype)
        assert gatherum.gather(data, ROWS).dtype is dtype
        with refused("gather", "data"):
            gatherum.gather(shrunk(data, data.nbytes - 1), ROWS)


def test_memory_of_numpy_cannot_shrink():
    """Torch itself raises, which arrays rely on."""
    for tensor in (torch.from_numpy(np.zeros(4)), torch.zeros(4)):
        tensor.numpy()
        with pytest.raises(RuntimeError, match="not resizable"):
            tensor.untyped_storage().resize_(8)


def test_without_the_functions_of_the_c_interface(monkeypatch):
    """If torch's C functions cannot be found, Python code queries the storage."""
    monkeypatch.setattr(dlpack, "_address", lambda name: 0)
    try:
        dlpack.find_storage()
        test_tensors_inside_their_storage()
        test_the_message_counts_bytes_of_the_storage()
    finally:
        monkeypatch.undo()
        dlpack.find_storage()
    assert dlpack._address("aoti_torch_get_storage_size") != 0
    assert dlpack._address("aoti_torch_no_such_function") == 0
    test_tensors_inside_their_storage()
