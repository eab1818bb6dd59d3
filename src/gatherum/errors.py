"""Every sentence that the operators can answer with, worded once.

Each function returns the exception to raise: operator, operand, what was expected, what came,
where.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike, fspath
from typing import Any

import numpy as np

Shape = tuple[int, ...]

# What reductions are called in other packages, and here.
NAMES_ELSEWHERE = {
    "sum": "add",
    "prod": "mul",
    "multiply": "mul",
    "amax": "max",
    "maximum": "max",
    "amin": "min",
    "minimum": "min",
    "replace": "none",
    "update": "none",
}

# Whether a call was made on tensors of PyTorch: what a sentence advises is then theirs.
_ON_TENSORS: ContextVar[bool] = ContextVar("_ON_TENSORS", default=False)


@contextmanager
def for_tensors() -> Iterator[None]:
    """Let sentences advise what PyTorch has, in place of what NumPy has."""
    token = _ON_TENSORS.set(True)
    try:
        yield
    finally:
        _ON_TENSORS.reset(token)


def _advice(of_numpy: str, of_torch: str) -> str:
    return of_torch if _ON_TENSORS.get() else of_numpy


_TUPLE_OF_EACH = "; indices[:, None] makes a tuple of each index"


def _choices(values: Iterable[str]) -> str:
    return ", ".join(repr(value) for value in values)


def _short(value: object) -> str:
    """Write a value in one short line: an array by its looks, and the rest cut."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} {value.shape}"
    whole = value[:60] if isinstance(value, (list, tuple)) else value
    text = " ".join(repr(whole).split())
    return text if len(text) <= 60 else text[:57] + "..."


def renamed(error: Exception, op: str, operands: Mapping[str, str], places: bool) -> Exception:
    """Return the error of an operator as one of a function that calls it, whose operands have other
    names. Without `places`, what stands in brackets is left out: where an invalid index is.
    """
    text = str(error).partition(": ")[2]
    for name, other in operands.items():
        text = re.sub(rf"\b{name}\b", other, text)
    if not places:
        text = re.sub(r" \([^)]*\)$", "", text)
    return type(error)(f"{op}: {text}")


def unknown_operator(op: object, operators: Sequence[str], caller: str = "plan") -> ValueError:
    return ValueError(f"{caller}: `op` must be one of {_choices(operators)}, got {_short(op)}")


def unknown_attribute(op: str, name: str, names: Sequence[str]) -> TypeError:
    return TypeError(f"{op}: unknown attribute {name!r}; it takes {_choices(names)}")


def not_an_integer(op: str, name: str, value: object, instead: str = "") -> TypeError:
    hint = f"; write {instead}" if instead else ""
    return TypeError(f"{op}: `{name}` must be an integer, got {_short(value)}{hint}")


def not_a_boolean(op: str, name: str, value: object) -> TypeError:
    return TypeError(f"{op}: `{name}` must be True or False, got {_short(value)}")


def not_one_of(op: str, name: str, value: object, choices: Sequence[str]) -> ValueError:
    ours = NAMES_ELSEWHERE.get(value) if isinstance(value, str) else None
    hint = f"; its name here is {ours!r}" if ours in choices else ""
    return ValueError(
        f"{op}: `{name}` must be one of {_choices(choices)}, got {_short(value)}{hint}"
    )


def out_of_range(op: str, name: str, value: int, low: int, high: int) -> ValueError:
    return ValueError(f"{op}: `{name}` must be in [{low}, {high}), got {value}")


def not_an_array(op: str, operand: str, why: object) -> ValueError:
    return ValueError(f"{op}: `{operand}` cannot be converted to an array: {why}")


def masked_array(op: str, operand: str) -> TypeError:
    return TypeError(f"{op}: `{operand}` must not be a masked array: its mask would be lost")


def foreign_array(op: str, operand: str, found: str, instead: str) -> TypeError:
    return TypeError(f"{op}: `{operand}` must be a NumPy array, got a {found}; {instead}")


def no_whole_items(op: str, operand: str, framework: str, found: object) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must have a dtype of {framework} that stores each number in whole "
        f"bytes, got {found}"
    )


def no_jax_out(op: str) -> TypeError:
    return TypeError(f"{op}: `out` must be None for JAX arrays, which nothing can write to")


def no_jax_platform(op: str, platform: str) -> NotImplementedError:
    if platform in ("cuda", "gpu"):
        why = "XLA cannot call the kernels of gatherum.cuda yet"
    else:
        why = "gatherum has no kernels for it"
    return NotImplementedError(
        f"{op}: JAX arrays must be on the CPU, got {platform}, and {why}; write "
        "jax.device_put(data, jax.devices('cpu')[0])"
    )


def explicit_shards(op: str, operand: str, spec: object) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must not be sharded along explicit axes of a mesh, got {spec}; call it "
        "in jax.shard_map, or through jax.sharding.auto_axes"
    )


def needs_x64(op: str, operand: str, found: np.dtype[Any], known: np.dtype[Any]) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must fit in {known}, the widest that JAX has without jax_enable_x64, "
        f"got {found}"
    )


def not_one_item(op: str, operand: str, shape: Shape) -> ValueError:
    return ValueError(f"{op}: `{operand}` must be one item, of shape (), got shape {shape}")


def unread_values(op: str, operand: str, found: str) -> TypeError:
    return TypeError(f"{op}: `{operand}` must have values that can be read here, got a {found}")


def unknown_sizes(op: str, operand: str, shape: object) -> ValueError:
    return ValueError(
        f"{op}: `{operand}` must have chunks of known sizes, got shape {shape}; write "
        f"{operand}.compute_chunk_sizes()"
    )


def other_chunks(op: str, operand: str, found: type) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must have chunks that are NumPy arrays, got {found.__module__}."
        f"{found.__name__}"
    )


def no_dask_out(op: str) -> TypeError:
    return TypeError(
        f"{op}: `out` must be None for Dask arrays, which nothing can write to; write "
        "result.to_zarr, or gatherum.dask.scatter_nd_into and its sisters"
    )


def not_a_store(op: str, store: object) -> TypeError:
    return TypeError(
        f"{op}_into: `store` must be a Zarr array in a directory, or its path, got "
        f"{type(store).__name__}"
    )


def no_zarr_output(op: str, out: object) -> ValueError:
    return ValueError(
        f"{op}: the output {out} cannot be written on a cluster, whose workers write Zarr "
        "directories such as 'x.zarr'"
    )


def no_scheduler(address: str, seconds: int, error: BaseException) -> ConnectionError:
    why = str(error) or "it does not say what it is"
    return ConnectionError(
        f"no scheduler of Dask answers at {address} within {seconds} seconds ({why})"
    )


def no_workers(address: str) -> ConnectionError:
    return ConnectionError(f"the scheduler at {address} has no workers")


def lost_scheduler() -> ConnectionError:
    return ConnectionError(
        "gatherum.dask: the scheduler went away before all tasks were done; start the call again "
        "on one that runs"
    )


def dead_workers(number: int) -> OSError:
    return OSError(
        f"gatherum.dask: every worker that ran one of the tasks died, {number} in all, most likely "
        "for want of memory; give workers more of it, or arrays smaller chunks"
    )


def full_disk(error: OSError) -> OSError:
    return OSError(
        f"gatherum.dask: a worker's disk does not take the rows that it receives ({error}); give "
        "its local_directory more room"
    )


def compressed_member(location: object) -> ValueError:
    return ValueError(
        f"from_file: {location} is compressed, so that no part of it can be read alone; write it "
        "with np.savez or np.save"
    )


def symbolic_shape(op: str, operand: str, shape: object) -> TypeError:
    return TypeError(f"{op}: `{operand}` must have sizes that are numbers, got {shape}")


def no_tensor(op: str, operand: str, found: str, instead: str) -> TypeError:
    return TypeError(f"{op}: `{operand}` must be a dense tensor, got a {found}; {instead}")


def other_device(op: str, operand: str, expected: str, found: str, instead: str) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must be on the device of `data`, {expected}, got {found}; {instead}"
    )


def not_on_cuda(op: str, operand: str, found: str, device: object) -> TypeError:
    place = "" if device is None else f" on {device}"
    return TypeError(
        f"{op}: `{operand}` must be an array on a CUDA device, of torch, CuPy or with "
        f"__cuda_array_interface__ or __dlpack__, got {found}{place}"
    )


def no_cuda_out(op: str) -> TypeError:
    return TypeError(
        f"{op}: `out` must be None for arrays on a CUDA device, except for tensors of torch; the "
        "result is a new array"
    )


def raise_in_capture(op: str) -> RuntimeError:
    return RuntimeError(
        f"{op}: `mode` must not be 'raise' while a CUDA graph is captured, because it waits "
        "for the device; take 'clip', 'wrap', 'fill' or 'drop'"
    )


def copy_in_capture(op: str, operand: str) -> RuntimeError:
    return RuntimeError(
        f"{op}: `{operand}` must be on the device while a CUDA graph is captured, got values on "
        "the host; copy them before the capture"
    )


def no_cuda_package(missing: str) -> ImportError:
    return ImportError(
        f"gatherum.cuda: {missing} is not installed; write pip install cuda-bindings "
        "nvidia-cuda-nvrtc"
    )


def no_cuda_sort() -> ImportError:
    return ImportError(
        "gatherum.cuda: this scatter sorts its updates by destination, and cuda.compute is not "
        "installed; write pip install 'cuda-cccl[minimal-cu13]', or give arrays of torch or CuPy"
    )


def no_cuda_driver(why: object) -> RuntimeError:
    return RuntimeError(
        f"gatherum.cuda: no CUDA device answers ({why}); install NVIDIA's driver, or call it on "
        "arrays in the host's memory"
    )


def no_cuda_arrays() -> OSError:
    return OSError(
        "gatherum.cuda: neither torch nor CuPy has a CUDA device here; install one of them for CUDA"
    )


def no_device_memory(name: str, why: str) -> MemoryError:
    return MemoryError(f"gatherum.cuda: {name}: {why}")


def driver_failed(name: str, status: str, why: str) -> RuntimeError:
    return RuntimeError(f"gatherum.cuda: {name} failed with {status}: {why}")


def not_compiled(name: str, log: str) -> RuntimeError:
    return RuntimeError(f"gatherum.cuda: the kernel {name} does not compile: {log}")


def no_broadcast(op: str, operand: str, found: Shape, other: str, expected: Shape) -> ValueError:
    return ValueError(
        f"{op}: `{operand}` must have a shape that broadcasts to {expected}, that of `{other}`, "
        f"got {found}"
    )


def no_segments(op: str, size: int) -> ValueError:
    return ValueError(f"{op}: `indptr` must not decrease, with values in [0, {size}]")


def no_device(op: str, found: str) -> NotImplementedError:
    return NotImplementedError(
        f"{op}: tensors must be on the CPU or on a CUDA device, got {found}; write data.cpu()"
    )


def no_onnx(op: str, what: str, instead: str) -> NotImplementedError:
    return NotImplementedError(f"{op}: ONNX has no {what} for it; {instead}")


def out_of_gradients(op: str) -> RuntimeError:
    return RuntimeError(
        f"{op}: `out` cannot be given where a gradient is recorded; leave `out` out, or call it "
        "under torch.no_grad()"
    )


def fill_needs_gradient(op: str) -> ValueError:
    return ValueError(
        f"{op}: `fill_value` must not need a gradient, because it would get none; write "
        "fill_value.item()"
    )


def out_of_vmap(op: str) -> RuntimeError:
    return RuntimeError(f"{op}: `out` cannot be given inside torch.func.vmap; leave it out")


def two_frameworks(op: str, one: str, found: str, other: str, found_there: str) -> TypeError:
    return TypeError(
        f"{op}: the arrays must be of one framework, got a {found} as `{one}` and a {found_there} "
        f"as `{other}`"
    )


def no_updates(op: str) -> TypeError:
    return TypeError(f"{op}: takes no `updates`; the scatters do")


def no_array(op: str, operand: str, value: object) -> TypeError:
    return TypeError(f"{op}: `{operand}` must be an array, got {type(value).__name__}")


def holds_arrays(op: str, value: object, operand: str = "indices") -> TypeError:
    made = _advice(
        "np.argwhere, or np.stack(arrays, -1)", "torch.argwhere, or torch.stack(tensors, -1)"
    )
    return TypeError(
        f"{op}: `{operand}` must be one array, got a {type(value).__name__} that holds arrays; "
        f"{made}, makes index tuples"
    )


def objects(op: str, operand: str, dtype: object) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must have a dtype without objects or references, got {dtype}"
    )


def not_an_index_dtype(op: str, dtype: Any, tuples: bool, operand: str = "indices") -> TypeError:
    if tuples:
        made = f"{_advice('np', 'torch')}.argwhere makes index tuples"
    else:
        made = f"{_advice('np.flatnonzero', 'mask.flatten().nonzero()[:, 0]')} makes indices"
    hint = f"; {made} of a mask" if dtype.kind == "b" else ""
    return TypeError(f"{op}: `{operand}` must have an integer dtype, got {dtype}{hint}")


def other_dtype(op: str, operand: str, expected: object, found: object) -> TypeError:
    cast = _advice("astype", "to")
    hint = f"; write {operand}.{cast}(data.dtype)" if operand in ("updates", "weights") else ""
    return TypeError(
        f"{op}: `{operand}` must have the dtype of `data`, {expected}, got {found}{hint}"
    )


def not_convertible(op: str, operand: str, expected: np.dtype[Any], value: object) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must convert to the dtype of `data`, {expected}, got {_short(value)}"
    )


def no_values(op: str, dtype: object) -> TypeError:
    return TypeError(f"{op}: values of dtype {dtype} need the package ml_dtypes")


def loses_kind(
    op: str, operand: str, expected: np.dtype[Any], kind: str, value: object
) -> ValueError:
    return ValueError(
        f"{op}: `{operand}` must be {kind} where `data` is {expected}, got {_short(value)}"
    )


def does_not_fit(
    op: str, operand: str, dtype: object, value: object, rounds: bool = False
) -> ValueError:
    hint = f"; write {operand}.item() to round it" if rounds else ""
    return ValueError(
        f"{op}: `{operand}` must convert exactly to the dtype of `data`, {dtype}, "
        f"got {_short(value)}{hint}"
    )


def not_finite(op: str, operand: str, dtype: object, value: object) -> ValueError:
    return ValueError(
        f"{op}: `{operand}` must stay finite in the dtype of `data`, {dtype}, got {_short(value)}"
    )


def not_reducible(op: str, reduction: str, dtype: object) -> TypeError:
    return TypeError(f"{op}: `reduction` {reduction!r} is not defined for dtype {dtype}")


def too_few_dimensions(op: str, operand: str, found: int) -> ValueError:
    return ValueError(f"{op}: `{operand}` must have at least 1 dimension, got {found}")


def too_many_dimensions(op: str, operand: str, limit: int, found: int) -> ValueError:
    return ValueError(f"{op}: {operand} must have at most {limit} dimensions, got {found}")


def other_rank(op: str, expected: int, found: int) -> ValueError:
    return ValueError(
        f"{op}: `indices` must have as many dimensions as `data`, {expected}, got {found}"
    )


def larger_than_data(op: str, dimension: int, size: int, found: int) -> ValueError:
    return ValueError(
        f"{op}: `indices` must have at most the size of `data`, {size}, on dimension {dimension}, "
        f"got {found}"
    )


def other_batch_shape(op: str, expected: Shape, found: Shape) -> ValueError:
    return ValueError(
        f"{op}: `indices` must have the batch dimensions of `data`, {expected}, got {found}"
    )


def tuple_too_long(op: str, limit: int, found: int, alone: bool) -> ValueError:
    return ValueError(
        f"{op}: the last dimension of `indices` must be at most {limit}, "
        f"the dimensions of `data` that are not batch dimensions, got {found}"
        f"{_TUPLE_OF_EACH if alone else ''}"
    )


def other_shape(op: str, operand: str, expected: Shape, found: Shape) -> ValueError:
    return ValueError(f"{op}: `{operand}` must have shape {expected}, got {found}")


def other_shape_of_one_tuple(op: str, expected: Shape, found: Shape) -> ValueError:
    return ValueError(f"{op}: `updates` must have shape {expected}, got {found}{_TUPLE_OF_EACH}")


def other_shape_than_indices(op: str, expected: Shape, found: Shape, slices: bool) -> ValueError:
    instead = ", or call scatter_slices" if slices else ""
    return ValueError(
        f"{op}: `updates` must have the shape of `indices`, {expected}, got {found}; write "
        f"{_advice('np', 'torch')}.broadcast_to(indices, {found}) for an index for each{instead}"
    )


def result_too_big(op: str, shape: Shape, dtype: Any) -> ValueError:
    what = "bytes" if dtype.itemsize else "elements"
    return ValueError(
        f"{op}: the result, shape {shape} of dtype {dtype}, has more {what} than can be addressed"
    )


def operand_too_big(op: str, operand: str, shape: Shape) -> ValueError:
    return ValueError(f"{op}: `{operand}`, shape {shape}, has more elements than can be addressed")


def not_a_shape(op: str, name: str, value: object) -> TypeError:
    return TypeError(f"{op}: `{name}` must be a tuple of integers, got {_short(value)}")


def below_zero(op: str, name: str, value: int) -> ValueError:
    return ValueError(f"{op}: `{name}` must be at least 0, got {value}")


def negative_size(op: str, name: str, shape: Shape) -> ValueError:
    return ValueError(f"{op}: `{name}` must have sizes of at least 0, got {shape}")


def not_a_dtype(op: str, operand: str, value: object) -> TypeError:
    return TypeError(f"{op}: `{operand}` must have a dtype that NumPy reads, got {_short(value)}")


def other_strides(op: str, operand: str, rank: int, strides: object) -> ValueError:
    return ValueError(
        f"{op}: `{operand}` must have {rank} strides, one for each dimension, whose reach can be "
        f"addressed, got {_short(strides)}"
    )


def not_an_operand(op: str, operand: str, value: object) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must be a numpy.ndarray without a mask, got {type(value).__name__}"
    )


def out_not_an_array(op: str, out: object) -> TypeError:
    return TypeError(f"{op}: `out` must be a numpy.ndarray, got {type(out).__name__}")


def out_read_only(op: str) -> ValueError:
    return ValueError(f"{op}: `out` must be writable, got a read-only array")


def out_overlaps(op: str, operand: str) -> ValueError:
    return ValueError(f"{op}: `out` must not share memory with `{operand}`")


def out_overlaps_itself(op: str, shape: Shape, strides: Shape) -> ValueError:
    return ValueError(
        f"{op}: `out` must not overlap itself, got shape {shape} with strides {strides}"
    )


def operand_changed(op: str, operand: str) -> ValueError:
    return ValueError(f"{op}: `{operand}` must keep its shape and memory during the call")


def _where(operand: str, position: Sequence[object]) -> str:
    return f"{operand}[{', '.join(map(str, position))}]" if position else operand


def index_out_of_bounds(
    op: str,
    value: object,
    axis: int,
    size: int,
    position: Sequence[object] | None,
    mode: str,
    operand: str = "indices",
) -> IndexError:
    """Name the first bad index; `position` is None when another thread changed it meanwhile."""
    if position is None:
        return IndexError(f"{op}: an index was invalid, but `{operand}` changed during the call")
    if mode in ("clip", "wrap"):
        problem = f"cannot be brought into axis {axis} of size {size} by mode {mode!r}"
    else:
        problem = f"is out of bounds for axis {axis} of size {size}"
    return IndexError(f"{op}: index {value} {problem} ({_where(operand, position)})")


def not_an_accumulator(value: object) -> TypeError:
    return TypeError(
        f"Accumulator.merge: `other` must be an Accumulator, got {type(value).__name__}"
    )


def other_accumulator(name: str, expected: object, found: object) -> ValueError:
    return ValueError(
        f"Accumulator.merge: `other` must have the {name} of this accumulator, {expected}, "
        f"got {found}"
    )


def order_matters(reduction: str, dtype: np.dtype[Any]) -> ValueError:
    return ValueError(
        f"Accumulator.merge: accumulators of {reduction!r} of dtype {dtype} cannot be merged, "
        "because the result depends on the order of the updates"
    )


def damaged_state(why: object) -> ValueError:
    return ValueError(f"Accumulator: the pickled state cannot be read: {why}")


def not_a_picture(path: str | PathLike[str]) -> ValueError:
    return ValueError(f"explain: pictures are SVG: `path` must end in .svg, got {fspath(path)!r}")


def torn_accumulator() -> RuntimeError:
    return RuntimeError(
        "Accumulator: this process was forked while another thread used the accumulator, which may "
        "hold half of a batch"
    )


def not_a_regular_file(path: str | PathLike[str], kind: str) -> OSError:
    return OSError(f"{fspath(path)}: is {kind}, not a regular file")


def file_too_big(path: str | PathLike[str], limit: int) -> OSError:
    return OSError(f"{fspath(path)}: has more than {limit} bytes, which is too much to read whole")


def other_prepared_dtype(op: str, expected: object, found: object) -> TypeError:
    return TypeError(f"{op}: the call was prepared for `data` of {expected}, got {found}")


def other_prepared_shape(op: str, expected: Shape, found: Shape) -> ValueError:
    return ValueError(f"{op}: the call was prepared for `data` of shape {expected}, got {found}")


def other_layout(op: str, operand: str, expected: object, found: object) -> ValueError:
    return ValueError(f"{op}: the plan was made for `{operand}` {expected}, got {found}")
