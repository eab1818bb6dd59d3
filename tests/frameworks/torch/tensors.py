"""Helpers of the tests of tensors, which are skipped without torch."""

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", minversion="2.10", reason="install torch to test tensors: pip install 'torch>=2.10'"
)

import gatherum.torch as room  # noqa: E402

SHARED = (
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip


def tensor_of(array):
    """Return a tensor that shares an array's memory if torch can, or a copy otherwise."""
    array = np.asarray(array)
    if array.dtype.name not in SHARED:
        wide = array.copy("C").view(f"u{array.dtype.itemsize}")
        return torch.from_numpy(wide).view(getattr(torch, array.dtype.name))
    item = array.dtype.itemsize
    seen = (
        array.dtype.isnative
        and array.flags.writeable
        and all(step >= 0 and step % item == 0 for step in array.strides)
    )
    return torch.from_numpy(array if seen else array.astype(array.dtype.newbyteorder("=")).copy())


def array_of(tensor, dtype):
    """Return a tensor's values as an array; dtypes that NumPy lacks as their bits."""
    assert type(tensor) is torch.Tensor
    if dtype.name not in SHARED:
        return (
            tensor.contiguous()
            .view(getattr(torch, f"uint{8 * dtype.itemsize}"))
            .numpy()
            .view(dtype)
        )
    return tensor.resolve_conj().resolve_neg().numpy()


def double(*shape, generator=None):
    """Return random numbers that require a gradient."""
    return torch.randn(shape, dtype=torch.float64, generator=generator, requires_grad=True)


def compiled(function, backend="aot_eager", **more):
    """Compile a function from scratch."""
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend=backend, **more)


__all__ = ["SHARED", "array_of", "compiled", "double", "room", "tensor_of", "torch"]
