"""`coalesce` inside `reproducible`: the core's sums and those of torch's operators."""

import numpy as np
import pytest
from tensors import room, torch

from gatherum.torch.overrides import segments

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch warns of some operators once
DTYPES = torch.float32, torch.bfloat16, torch.int8, torch.bool, torch.complex64
CALLS = {  # sizes of sparse dimensions, sizes of dense dimensions, number of elements
    "vector": ((5,), (), 9),
    "rows": ((5,), (3,), 9),
    "elements": ((4, 5), (), 40),
    "blocks": ((4, 4, 5), (2, 3), 30),
    "out of bounds": ((2, 3), (), 30),
    "many": ((50,), (2,), 70_000),
    "empty": ((5,), (0,), 9),
}


def sparse(sizes, dense, count, dtype, negated=False):
    make = torch.Generator().manual_seed(0)
    indices = torch.randint(4, (count, len(sizes)), generator=make).T  # not contiguous
    values = torch.randint(-9, 9, (count, *dense), generator=make).to(dtype)
    if dtype.is_floating_point:
        values *= torch.logspace(0, 6, count).to(dtype).view(-1, *[1] * len(dense))  # order matters
    values = torch._neg_view(values) if negated else values.repeat_interleave(2, 0)[::2]
    return torch.sparse_coo_tensor(indices, values, (*sizes, *dense), check_invariants=False)


def coalesced(tensor):
    with room.reproducible() as context:
        result = tensor.coalesce()
    values = result._values().resolve_conj().contiguous().view(torch.uint8)
    assert result.is_coalesced()
    return context.report(), result.shape, result._indices().tolist(), values.tolist()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_the_core_computes_the_same_as_the_operators(name, dtype, monkeypatch):
    tensor = sparse(*CALLS[name], dtype)
    got = coalesced(tensor)
    assert got[0] == ({"_coalesce": 1}, {}) or name == "empty"
    monkeypatch.setattr(segments.native, "coalesce", lambda *_: None)
    assert coalesced(tensor) == got


def test_sums_are_in_the_order_of_the_elements():
    tensor = sparse(*CALLS["elements"], torch.float32)
    expected = np.zeros((4, 5), np.float32)
    np.add.at(expected, tuple(tensor._indices().numpy()), tensor._values().numpy())
    with room.reproducible():
        got = tensor.coalesce().to_dense().numpy()
    assert got.tobytes() == expected.tobytes()


def test_negated_values(monkeypatch):
    tensor = sparse(*CALLS["rows"], torch.float32, negated=True)
    got = coalesced(tensor)
    monkeypatch.setattr(segments.native, "coalesce", lambda *_: None)
    assert coalesced(tensor) == got


@pytest.mark.parametrize("dtype", [torch.uint16, torch.float8_e4m3fn], ids=str)
def test_dtypes_without_kernels_of_torch(dtype):
    tensor = sparse(*CALLS["vector"], torch.uint8)
    tensor = torch.sparse_coo_tensor(
        tensor._indices(), tensor._values().to(dtype), tensor.shape, check_invariants=False
    )
    with pytest.raises(NotImplementedError) as expected:
        tensor.coalesce()
    with room.reproducible() as context, pytest.raises(NotImplementedError) as got:
        tensor.coalesce()
    assert str(got.value) == str(expected.value)
    assert context.report() == ({}, {"_coalesce": 1})
