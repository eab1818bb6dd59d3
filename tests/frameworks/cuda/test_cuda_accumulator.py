"""Accumulators of device arrays have the bits of one scatter on NumPy arrays."""

import numpy as np
import pytest
from doubles import HostArray, array_of

import gatherum
from strategies import same_bits

CASES = [
    ("f4", "add", True), ("f4", "add", False), ("f2", "mean", False), ("f2", "mul", True),
    ("i1", "mean", True), ("i8", "add", False), ("f4", "max", False), ("f2", "min", False),
    ("?", "mul", False), ("c8", "mean", False), ("i4", "none", True),
]  # fmt: skip


def batches(dtype):
    """Return data and batches; an element has one update, which is a NaN, and others have many."""
    rng = np.random.default_rng(7)
    data = rng.integers(0, 9, (6, 4)).astype(dtype)
    indices = np.concatenate([rng.integers(0, 4, 40), [4]])
    updates = (rng.normal(size=(41, 4)) * 7).astype(dtype)
    if data.dtype.kind == "f":
        updates[-1, 1] = np.array(-1, f"i{data.itemsize}").view(dtype)  # a NaN with a payload
        updates[3, 2] = np.nan
        data[5, 0] = -np.nan
    return data, np.split(indices, [10, 11, 30]), np.split(updates, [10, 11, 30])


@pytest.mark.parametrize(("dtype", "reduction", "include_self"), CASES)
def test_the_bits_of_one_scatter(on_shim, dtype, reduction, include_self):
    data, indices, updates = batches(dtype)
    fold = {"reduction": reduction, "include_self": include_self}
    there = gatherum.Accumulator(HostArray(data.T.copy().T), **fold)
    assert isinstance(there, gatherum.Accumulator)
    for batch in zip(indices, updates, strict=True):
        there.scatter_slices(HostArray(batch[0]), HostArray(batch[1].copy("F")))
    joined = np.concatenate(indices), np.concatenate(updates)
    expected = gatherum.scatter_slices(data, *joined, **fold)
    assert same_bits(array_of(there.finish()), expected)
    out = np.zeros((4, 6), dtype).T
    wrapped = HostArray(out)
    assert there.finish(wrapped) is wrapped
    assert same_bits(out, expected)
    counts = np.repeat(np.bincount(joined[0], minlength=6)[:, None], 4, 1)
    assert same_bits(array_of(there.counts()), counts.astype(np.int64))


def test_an_invalid_index_leaves_the_accumulator_as_it_was(on_shim):
    data = np.zeros((3, 2), np.float32)
    there = gatherum.Accumulator(HostArray(data), "add", include_self=False)
    there.scatter_nd([[0]], np.ones((1, 2), np.float32))
    words = r"^scatter_nd: index 3 is out of bounds for axis 0 of size 3 \(indices\[1, 0\]\)$"
    with pytest.raises(IndexError, match=words):
        there.scatter_nd([[0], [3]], np.ones((2, 2), np.float32))
    with pytest.raises(TypeError, match=r"^scatter_nd: `updates` must have the dtype of `data`"):
        there.scatter_nd([[0]], np.ones((1, 2)))
    assert array_of(there.finish()).tolist() == [[1, 1], [0, 0], [0, 0]]
    assert array_of(there.counts()).tolist() == [[1, 1], [0, 0], [0, 0]]
    assert repr(there) == (
        "<Accumulator of float32 (3, 2) on cuda:0, reduction='add', include_self=False, "
        "mode='raise', negative=True>"
    )


def test_methods_that_are_not_supported(on_shim):
    data = HostArray(np.zeros(3, np.float32))
    with pytest.raises(NotImplementedError) as caught:
        gatherum.Accumulator(data, "fsum")
    assert str(caught.value) == (
        "Accumulator: reduction 'fsum' of dtype float32 is not supported for arrays on a CUDA "
        "device; scatter all updates in one call, or copy them to the host"
    )
    there = gatherum.Accumulator(data, "add")
    with pytest.raises(NotImplementedError, match=r"^Accumulator.merge: accumulators of arrays on"):
        there.merge(there)
    with pytest.raises(TypeError, match=r"cannot be pickled; pickle the result of finish\(\)$"):
        there.__getstate__()
    with pytest.raises(TypeError, match=r"^Accumulator.finish: `out` must be an array on a CUDA"):
        there.finish(np.zeros(3, np.float32))
    with pytest.raises(ValueError, match=r"^Accumulator.finish: `out` must have shape \(3,\), got"):
        there.finish(HostArray(np.zeros(2, np.float32)))


@pytest.mark.frameworks
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_tensors(on_shim, as_cuda, monkeypatch, dtype):
    import torch

    from gatherum.torch.adapter import TorchAdapter

    data = torch.arange(12.0).reshape(4, 3).to(getattr(torch, dtype))
    index, updates = torch.tensor([3, 0, 3]), torch.full((3, 3), 1 / 3).to(data.dtype)
    expected = gatherum.scatter_slices(data, index, updates, reduction="mean")
    monkeypatch.setattr(TorchAdapter, "device", lambda self, value: "cuda")
    there = gatherum.Accumulator(data, "mean")
    for k in range(3):
        there.scatter_slices(index[k : k + 1], updates[k : k + 1])
    result = there.finish()
    assert result.dtype == data.dtype
    assert torch.equal(result, expected)
    assert there.counts().dtype == torch.int64
