"""Errors that only calls on CUDA devices raise; shared errors are in `errors`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TypeAlias

# The offset and the size in bytes of each parameter of a kernel.
Places: TypeAlias = Sequence[tuple[int, int]]


def not_on_cuda(op: str, operand: str, type_name: str, device: object) -> TypeError:
    location = "" if device is None else f" on {device}"
    return TypeError(
        f"{op}: `{operand}` must be an array on a CUDA device, of torch, CuPy or with "
        f"__cuda_array_interface__ or __dlpack__, got {type_name}{location}"
    )


def on_rocm(op: str, version: str) -> TypeError:
    return TypeError(
        f"{op}: `data` must be on an NVIDIA GPU, got a tensor of torch for ROCm {version}, which "
        'calls AMD\'s devices "cuda", too; write data.cpu()'
    )


def no_device_accumulator(reduction: str, dtype: object) -> NotImplementedError:
    return NotImplementedError(
        f"Accumulator: reduction {reduction!r} of dtype {dtype} is not supported for arrays on a "
        "CUDA device; scatter all updates in one call, or copy them to the host"
    )


def no_device_merge() -> NotImplementedError:
    return NotImplementedError(
        "Accumulator.merge: accumulators of arrays on a CUDA device cannot be merged; give all "
        "batches to one accumulator"
    )


def no_device_pickle() -> TypeError:
    return TypeError(
        "Accumulator: an accumulator of an array on a CUDA device cannot be pickled; pickle the "
        "result of finish()"
    )


def raise_in_capture(op: str) -> RuntimeError:
    return RuntimeError(
        f"{op}: `mode` must not be 'raise' while a CUDA graph is captured, because it waits "
        "for the device; take 'clip', 'wrap', 'fill' or 'drop'"
    )


def nowhere_in_capture(op: str, mode: str) -> RuntimeError:
    return RuntimeError(
        f"{op}: mode {mode!r} has no place to go to in a dimension of size 0, and cannot wait for "
        "the device to name the index while a CUDA graph is captured"
    )


def no_capture(op: str) -> RuntimeError:
    return RuntimeError(
        f"{op}: arrays that are known by __cuda_array_interface__ or __dlpack__ alone cannot be "
        "part of a CUDA graph; capture the call on tensors of torch or on arrays of CuPy"
    )


def no_cuda_package(missing: str) -> ImportError:
    return ImportError(
        f"gatherum.cuda: {missing} is not installed; write pip install 'cuda-bindings>=13,<14' "
        "'nvidia-cuda-nvrtc>=13,<14'"
    )


def no_cuda_sort(why: object) -> ImportError:
    return ImportError(
        "gatherum.cuda: this scatter sorts its updates by destination, and cuda.compute cannot be "
        f"imported ({why}); write pip install 'cuda-cccl[minimal-cu13]>=1.1', or give arrays of "
        "torch or CuPy"
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


def other_parameters(kernel_name: str, expected: Places, found: Places) -> RuntimeError:
    pairs = zip_longest(expected, found)
    number, (wanted, taken) = next((i, pair) for i, pair in enumerate(pairs) if len({*pair}) > 1)
    has = "does not exist" if taken is None else f"has {taken[1]} bytes at offset {taken[0]}"
    want = "no parameter" if wanted is None else f"{wanted[1]} bytes at offset {wanted[0]}"
    return RuntimeError(
        f"gatherum.cuda: the kernel {kernel_name} does not take the arguments of its launch: "
        f"parameter {number} {has}, expected {want}"
    )
