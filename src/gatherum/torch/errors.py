"""Errors that only calls on tensors raise; shared errors are in `errors`."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from gatherum._model import callers
from gatherum._model.errors import Shape, for_tensors, not_an_index_dtype
from gatherum._model.errors.texts import indexed


def naming(caller: str) -> AbstractContextManager[None]:
    """Return a context in which errors name the function and operands of the original call."""
    if torch.compiler.is_compiling():  # `fakes` does so then
        return nullcontext()
    return callers.naming(caller)


def not_a_dense_tensor(op: str, operand: str, found: str, instead: str) -> TypeError:
    advice = f"; {instead}" if instead else ""
    return TypeError(f"{op}: `{operand}` must be a dense tensor, got a {found}{advice}")


def values_cannot_be_read(op: str, operand: str, where: str, instead: str) -> RuntimeError:
    return RuntimeError(f"{op}: the values of `{operand}` cannot be read {where}; {instead}")


def fill_of_batch(op: str) -> RuntimeError:
    return RuntimeError(
        f"{op}: `fill_value` must be one number for the whole batch inside torch.func.vmap, got a "
        "batch of them"
    )


def outside_storage(op: str, operand: str, held: int, needed: int) -> ValueError:
    return ValueError(
        f"{op}: `{operand}` must lie in its storage, which has {held} bytes, got a tensor that "
        f"reaches to byte {needed}; give the storage its old size by untyped_storage().resize_"
    )


def inference_tensor(op: str, operand: str) -> RuntimeError:
    return RuntimeError(
        f"{op}: `{operand}` must not be an inference tensor, which can only be changed in place "
        f"inside torch.inference_mode(); write {operand}.clone()"
    )


def no_broadcast(
    op: str, operand: str, found: Shape, other: str, expected: Shape, dim: int | None
) -> ValueError:
    """Report a shape. `dim` is a dimension along which that shape would fit."""
    suffix = "" if dim is None else f"; write dim={dim} for one entry for each slice there"
    return ValueError(
        f"{op}: `{operand}` must have a shape that broadcasts to {expected}, that of `{other}`, "
        f"got {found}{suffix}"
    )


def not_a_pointer(op: str, found: Any) -> TypeError:
    with for_tensors():
        return not_an_index_dtype(op, found, False, "indptr")


def no_segments(op: str, size: int | None, found: str = "") -> ValueError:
    """Report a pointer. `size` is None if `indptr` itself determines the size."""
    values = "of at least 0" if size is None else f"in [0, {size}]"
    return ValueError(f"{op}: `indptr` must not decrease, with values {values}{found}")


def index_past_sizes(op: str, value: int, position: tuple[int, ...]) -> IndexError:
    at = indexed("index", position)
    return IndexError(f"{op}: index {value} is out of bounds for every size ({at})")


def no_device(op: str, found: str) -> NotImplementedError:
    return NotImplementedError(
        f"{op}: tensors must be on the CPU or on a CUDA device, got {found}; write data.cpu()"
    )


def no_gradient_of(op: str, operand: str) -> NotImplementedError:
    return NotImplementedError(
        f"{op}: `{operand}` must not need a gradient, because there is none; write "
        f"{operand}.detach()"
    )


def no_float(op: str, dtype: object) -> TypeError:
    return TypeError(f"{op}: `x` must be of floats, got {dtype}")


def no_onnx(op: str, what: str, instead: str) -> NotImplementedError:
    return NotImplementedError(f"{op}: ONNX has no {what} for it; {instead}")


def out_of_gradients(op: str) -> RuntimeError:
    return RuntimeError(
        f"{op}: `out` cannot be given where a gradient is recorded; leave `out` out, or call it "
        "under torch.no_grad()"
    )


def no_transforms(op: str, why: str) -> NotImplementedError:
    return NotImplementedError(
        f"{op}: derivatives cannot be computed inside transforms of torch.func: {why}"
    )


def fill_needs_gradient(op: str) -> ValueError:
    return ValueError(
        f"{op}: `fill_value` must not need a gradient, because it would get none; write "
        "fill_value.item()"
    )


def out_of_vmap(op: str) -> RuntimeError:
    return RuntimeError(f"{op}: `out` cannot be given inside torch.func.vmap; leave it out")
