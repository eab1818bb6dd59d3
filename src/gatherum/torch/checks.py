"""Check that values are tensors that the operators support, and suggest alternatives."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from gatherum._arguments import array_likes
from gatherum._frameworks import refusals, registry
from gatherum._model import errors
from gatherum._model.errors import frameworks as framework_errors
from gatherum._system import native

from . import addresses, private
from . import errors as torch_errors


def check_data_tensor(op: str, value: object) -> None:
    """Raise TypeError if `data` is not a tensor."""
    if not isinstance(value, Tensor):
        refuse_operand(op, "data", value)


def check_out_tensor(op: str, value: object) -> None:
    """Raise an error if `out` is not a tensor, or must not be changed."""
    if value is None:
        return
    if not isinstance(value, Tensor):
        refuse_operand(op, "out", value)
    if not torch.compiler.is_dynamo_compiling():  # Dynamo cannot query a tensor
        check_changeable(op, "out", value)


def check_changeable(op: str, operand: str, tensor: Tensor) -> None:
    """Raise RuntimeError for an inference tensor outside of inference mode.

    Autograd does not track changes of such a tensor.
    """
    if tensor.is_inference() and not torch.is_inference_mode_enabled():
        raise torch_errors.inference_tensor(op, operand)


def refuse_operand(op: str, operand: str, value: object) -> NoReturn:
    """Raise TypeError for an operand that must be a tensor."""
    if array_likes.is_masked(value):  # torch.as_tensor would drop the mask
        raise errors.masked_array(op, operand)
    check_container(op, operand, value)
    array_likes.check_items(op, operand, value)
    foreign = registry.foreign_type(type(value))
    type_name = foreign.name if foreign else type(value).__name__
    array_types = (list, tuple, bool, int, float, complex, np.ndarray, np.generic)
    convertible = isinstance(value, array_types) or (foreign and foreign.source.name != "torch")
    instead = f"write torch.as_tensor({operand})" if convertible else ""
    raise torch_errors.not_a_dense_tensor(op, operand, type_name, instead)


def check_container(op: str, operand: str, value: object) -> None:
    """Raise TypeError for a torch object that contains tensors but is not itself a tensor."""
    fx = sys.modules.get("torch.fx")
    if fx is not None and isinstance(value, fx.Proxy):
        instead = "call it in a function of yours that torch.fx.wrap marks"
        raise torch_errors.not_a_dense_tensor(op, operand, "torch.fx.Proxy", instead)
    if isinstance(value, tuple) and refusals.whole_tuple(type(value)):
        array_likes.check_items(op, operand, value)


def check_dense(op: str, operand: str, tensor: Tensor, device: torch.device) -> None:
    """Raise an error for a tensor that is sparse or on another device."""
    strided = tensor.layout is torch.strided and not (tensor.is_nested or tensor.is_quantized)
    if not strided or type(tensor) is not Tensor:
        check_plain_tensor(op, operand, tensor)
    if tensor.device != device:
        if tensor.is_meta:
            raise framework_errors.without_values(op, operand, "tensor on the device meta")
        instead = f"write {operand}.to(data.device)"
        raise framework_errors.other_device(op, operand, str(device), str(tensor.device), instead)


def check_plain_tensor(op: str, operand: str, tensor: Tensor) -> None:
    """Raise TypeError unless a tensor consists only of strided values."""
    if tensor.is_nested:
        instead = f"call it for each of {operand}.unbind(), or pad by torch.nested.to_padded_tensor"
        raise torch_errors.not_a_dense_tensor(op, operand, "nested tensor", instead)
    if tensor.is_quantized:
        integers = operand in ("indices", "index", "indptr")
        instead = f"write {operand}.{'int_repr' if integers else 'dequantize'}()"
        raise torch_errors.not_a_dense_tensor(op, operand, "quantized tensor", instead)
    if tensor.layout is not torch.strided:
        description = f"tensor of layout {str(tensor.layout).removeprefix('torch.')}"
        raise torch_errors.not_a_dense_tensor(
            op, operand, description, f"write {operand}.to_dense()"
        )
    if refusals.is_masked_tensor(type(tensor)):
        instead = f"write {operand}.to_tensor(0) to fill what is masked"
        raise torch_errors.not_a_dense_tensor(op, operand, "MaskedTensor", instead)


def refuse_subclass(op: str, names: Sequence[str], operands: Sequence[Any], error: Exception
                    ) -> None:  # fmt: skip
    """Raise TypeError if a call failed because a Tensor subclass does not implement it."""
    unknown = isinstance(error, (NotImplementedError, TypeError)) or "gatherum." in str(error)
    if not unknown or str(error).startswith(f"{op}: "):
        return
    named = list(zip(names, operands, strict=False))
    for name, value in reversed(named):  # the calling function may have made the data
        if isinstance(value, Tensor) and _dispatches(type(value)):
            check_plain_tensor(op, name, value)
            distributed = type(value).__name__ == "DTensor"
            local = f"write {name}.full_tensor(), or {name}.to_local() for the part that is here"
            instead = local if distributed else "make a torch.Tensor of it"
            raise torch_errors.not_a_dense_tensor(
                op, name, type(value).__name__, instead
            ) from error


def _dispatches(tensor_type: type) -> bool:
    """Return True if a Tensor subclass overrides ``__torch_dispatch__``."""
    return tensor_type.__torch_dispatch__ is not Tensor.__torch_dispatch__  # type: ignore[attr-defined]


def check_values(op: str, operand: str, tensor: Tensor, instead: str) -> None:
    """Raise an error if a size depends on a tensor whose values cannot be read."""
    if torch.compiler.is_compiling():
        return
    if is_batched(tensor):
        raise torch_errors.values_cannot_be_read(op, operand, "inside torch.func.vmap", instead)
    if tensor.is_meta:
        raise torch_errors.values_cannot_be_read(op, operand, "on the device meta", instead)


def is_batched(tensor: Tensor) -> bool:
    """Return True if a tensor is a batch inside ``torch.func.vmap``."""
    if not private.transforms_active():
        return False
    while private.is_wrapped(tensor):
        if private.is_batch(tensor):
            return True
        tensor = private.unwrapped(tensor)
    return False


def check_storages(op: str, names: Sequence[str], operands: tuple[object, ...]) -> None:
    """Raise ValueError for a tensor with elements outside of its storage.

    The storage of a tensor can become smaller. Torch does not check for this, not even before it
    copies.
    """
    if private.transforms_active():
        operands = tuple(map(innermost, operands))
    find = addresses if private.exchange is None else native
    operand = find.first_outside_storage(operands)
    if operand >= 0:
        tensor: Any = operands[operand]
        nbytes = tensor.untyped_storage().nbytes()
        raise torch_errors.outside_storage(
            op, names[operand], nbytes, addresses.end_in_storage(tensor)
        )


def check_storage(op: str, operand: str, tensor: Tensor) -> None:
    """Raise ValueError if a tensor has elements outside of its storage."""
    check_storages(op, (operand,), (tensor,))


def innermost(value: Any) -> Any:
    """Return the tensor that owns the memory, without the wrappers of `torch.func`."""
    while isinstance(value, Tensor) and private.is_wrapped(value):
        value = private.unwrapped(value)
    return value
