"""Rows of an open table as PyTorch tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gatherum.files.formats.dtypes import name_of

if TYPE_CHECKING:
    import torch


class TensorTarget(NamedTuple):
    """The device and the dtype of the tensors that a call returns."""

    device: torch.device
    dtype: torch.dtype

    @classmethod
    def of(cls, op: str, device: Any, dtype: np.dtype[Any]) -> TensorTarget:
        """Return the target of a call.

        Raise ImportError if PyTorch is not installed, ValueError for an invalid device, TypeError
        for a dtype that PyTorch lacks, and RuntimeError if the system has no CUDA device.
        """
        try:
            import torch
        except ImportError:
            raise ImportError(f"{op}: `device` needs PyTorch: pip install torch") from None
        try:
            torch_device = torch.device(device)
        except (RuntimeError, TypeError):
            raise ValueError(
                f"{op}: `device` must be a device of PyTorch, such as 'cuda', got {device!r}"
            ) from None
        torch_dtype = getattr(torch, name_of(dtype), None)
        if not isinstance(torch_dtype, torch.dtype) or not dtype.isnative:
            raise TypeError(f"{op}: `device` needs a dtype that PyTorch has, got {dtype}")
        if torch_device.type == "cuda" and not torch.cuda.is_available():
            raise RuntimeError(
                f"{op}: `device` is {str(torch_device)!r}, but PyTorch finds no CUDA device"
            )
        return cls(torch_device, torch_dtype)

    @property
    def is_cuda(self) -> bool:
        """Whether rows are copied from pinned memory."""
        return bool(self.device.type == "cuda")

    def pinned(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Return pinned memory, from which `sent` copies asynchronously."""
        import torch

        return torch.empty(shape, dtype=self.dtype, pin_memory=True)

    def sent(self, memory: torch.Tensor) -> torch.Tensor:
        """Return a tensor on the device. PyTorch reuses pinned memory only after the copy."""
        return memory.to(self.device, non_blocking=memory.is_pinned())

    def tensor(self, rows: NDArray[Any]) -> torch.Tensor:
        """Return rows as a tensor on the device. On the CPU, it shares the memory of `rows`."""
        import torch

        flat = torch.from_numpy(rows.reshape(-1).view(np.uint8))
        memory = flat.view(self.dtype).reshape(rows.shape)
        return self.sent(memory.pin_memory() if self.is_cuda else memory)
