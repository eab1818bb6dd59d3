"""Call the core on the memory of dense CPU tensors, without copies."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
from numpy.typing import NDArray
from torch import Tensor

from gatherum._arguments.conversion import is_integer_zero
from gatherum._model.call import OPERAND_NAMES, ArraySpec, Attributes
from gatherum._model.modes import FILLING
from gatherum._plans import index_errors
from gatherum._system import native

from . import addresses, dtypes, private
from .checks import check_dense, check_storage, check_storages, is_batched
from .operands import fill_item


def needs_fill_item(mode: str, fill: Any) -> bool:
    """Return True if a call needs a fill item.

    The default item has only zero bits, so -0.0 is not the default.
    """
    return mode in FILLING and not is_integer_zero(fill)


def run(
    attributes: Attributes,
    data: Tensor,
    indices: Tensor,
    updates: Tensor | None,
    fill: Any,
    out: Tensor | None,
) -> Tensor:
    """Run one call on dense CPU tensors. Return the result, or `out`."""
    op, options = attributes.op, attributes.positional
    tensors = data, indices, updates, out
    for name, tensor in zip(OPERAND_NAMES, tensors, strict=True):
        if tensor is not None:
            dtypes.code_of(op, name, tensor.dtype)
    item = fill_item(op, fill, data.dtype) if needs_fill_item(attributes.mode, fill) else None
    if private.exchange is None:
        check_storages(op, OPERAND_NAMES, tensors)
        run = partial(addresses.run, op, data, indices, updates, options, item, out)
        return cast(Tensor, index_errors.run_named(attributes.caller, run))
    call = op, data, indices, updates, *options, item, out
    result: Tensor = index_errors.run_named(attributes.caller, native.run_on_tensors, *call)
    return result


def open_exchange(record: Callable[..., Tensor], record_total: Callable[..., Tensor]) -> None:
    """Register torch's functions with the core.

    These functions access the memory of tensors, check for active transforms and modes, and run
    calls that require gradients, including scatters of sums into zeros.
    """
    if private.exchange is None:
        return
    find_storage()
    try:
        native.set_torch(
            private.exchange,
            Tensor,
            torch.nn.Parameter,
            torch.int8,
            torch.uint8,
            private.watchers,
            torch.is_grad_enabled,
            Tensor.requires_grad,
            Tensor.is_neg,
            record,
            record_total,
            private.level_module(),
            check_storage,
        )
    except ValueError:  # another version of DLPack
        private.exchange = None


def find_storage() -> None:
    """Register the functions with which the core finds the storage of a tensor."""
    size, offset = (
        _address(f"aoti_torch_get_storage_{quantity}") for quantity in ("size", "offset")
    )
    example = torch.empty(1, device="cpu")
    handle = private.handle_of(example)
    size = size if handle else 0
    native.set_torch_storage(size, offset, example, handle, _bytes_to_end)


def _bytes_to_end(tensor: Tensor) -> int:
    """Return the number of bytes from a tensor's first element to the end of its storage."""
    before: int = tensor.storage_offset() * tensor.element_size()
    size: int = tensor.untyped_storage().nbytes()
    return size - before


def _address(name: str) -> int:
    """Return the address of a function of torch's stable C interface, or 0 if it is missing."""
    try:
        library = ctypes.CDLL("torch_cpu.dll" if os.name == "nt" else private.library_path())
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    except (OSError, AttributeError):
        return 0


def array_or_spec(op: str, operand: str, value: Tensor) -> NDArray[Any] | ArraySpec:
    """Return an array of a tensor's memory, or its spec if NumPy cannot read the values."""
    check_dense(op, operand, value, value.device)
    check_storage(op, operand, value)
    spec = addresses.spec_of(op, operand, value)
    is_unreadable = (
        value.is_conj() or value.is_neg() or type(value) not in (Tensor, torch.nn.Parameter)
    )
    is_unreadable = is_unreadable or is_batched(value)
    if value.device.type != "cpu" or is_unreadable or not dtypes.is_of_numpy(value.dtype):
        return spec
    array: NDArray[Any] = value.detach().numpy()
    return array
