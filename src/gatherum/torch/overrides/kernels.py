"""Replace kernels of torch by the functions of the table, and restore them.

On the host, the core runs plain calls of frequent operators without Python (`OverrideKernel`). It
passes all other calls to the function.
"""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gatherum._system import native
from gatherum.torch import private

from .scatter_calls import Declined, Invalid
from .table import ROWS, Row

# How often each operator ran here, and how often torch's kernel ran instead.
_RAN: Counter[str] = Counter()
_PASSED: Counter[str] = Counter()
_COUNTING = threading.Lock()
_CORE_KERNELS: dict[str, native.OverrideKernel] = {}  # the registered ones, which count their runs


def counts() -> tuple[Counter[str], Counter[str]]:
    """Return the number of calls of each operator on gatherum's and on torch's kernels."""
    with _COUNTING:
        return _counts()


def _counts() -> tuple[Counter[str], Counter[str]]:
    runs = Counter({name: kernel.runs for name, kernel in _CORE_KERNELS.items()})
    passed = Counter({name: kernel.passed for name, kernel in _CORE_KERNELS.items()})
    return _RAN + runs, _PASSED + passed


def _kernel(
    name: str, run: Callable[..., Any], torch_kernel: Any, device: bool
) -> Callable[..., Any]:
    """Return a kernel that runs `run`, or torch's kernel if `run` does not support the call."""

    def kernel(keyset: Any, *args: Any, **options: Any) -> Any:
        quiet = False
        try:
            result = run(*args, **options)
        except Declined as reason:
            quiet = isinstance(reason, Invalid)
        except torch.OutOfMemoryError:
            raise
        except (IndexError, TypeError, ValueError, RuntimeError) as error:
            # Nothing is written yet. On the host, torch's kernel raises an error; on a device, an
            # index out of bounds would make the device unusable for the process.
            quiet = isinstance(error, IndexError)
            if device and quiet:
                raise
        else:
            with _COUNTING:
                _RAN[name] += 1
            return result
        with _COUNTING:
            _PASSED[name] += 1
        if quiet:
            return _run_quietly(name, torch_kernel, keyset, args, options)
        return torch_kernel.call_boxed(keyset, *args, **options)

    private.leave_untraced(kernel)
    return kernel


def _run_quietly(name: str, torch_kernel: Any, keyset: Any, args: Any, options: Any) -> Any:
    """Run an invalid call on torch's kernel without torch's deterministic mode.

    The kernel then raises the error of the call, not an error about determinism. torch accepts
    invalid indices of a tensor without elements. If it accepts any other call, raise RuntimeError,
    because the order of the updates was not fixed.
    """
    only_warns = torch.is_deterministic_algorithms_warn_only_enabled()
    enabled = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)
    try:
        result = torch_kernel.call_boxed(keyset, *args, **options)
    finally:
        torch.use_deterministic_algorithms(enabled, warn_only=only_warns)
    if isinstance(result, Tensor) and not result.numel():
        return result
    raise RuntimeError(
        f"reproducible: {name}: torch's kernel accepted operands that gatherum rejected, and may "
        "have applied updates in any order"
    )


def _in_place(run: Callable[..., Any]) -> Callable[..., Any]:
    def change(data: Tensor, *args: Any, **options: Any) -> Tensor:
        run(data, *args, **options, out=data)
        return data

    return change


def _into(run: Callable[..., Any]) -> Callable[..., Any]:
    def write(data: Tensor, *args: Any, out: Tensor, **options: Any) -> Tensor:
        if out.dtype is not data.dtype or out.device != data.device:
            raise Declined
        tensors = [value for value in args if isinstance(value, Tensor)]
        if any(private.share_storage(out, tensor) for tensor in tensors):
            raise Declined
        result = run(data, *args, **options)
        if out.shape != result.shape:
            return torch.ops.aten.clone.out(result, out=out)  # which resizes `out`
        return out.copy_(result)

    return write


def _kernels(row: Row) -> dict[str, Callable[..., Any]]:
    """Return a dict from the names of a row's operators to their functions."""
    forms = {row.new: row.run, row.in_place: _in_place(row.run), row.out: _into(row.run)}
    return {name: run for name, run in forms.items() if name}


def replace() -> torch.library.Library:
    """Register the kernels of the table. Return the library that holds them."""
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about replaced kernels
        for row in ROWS:
            for name, run in _kernels(row).items():
                for key in row.keys:
                    _register(library, row, name, run, key)
    return library


def _register(
    library: torch.library.Library, row: Row, name: str, run: Callable[..., Any], key: str
) -> None:
    """Register a kernel for a key. On the host, the core runs it if it can."""
    torch_kernel = _torch_kernel(name, key)
    if torch_kernel is None:
        return
    kernel, keys = _kernel(name, run, torch_kernel, "CUDA" in key), private.cpu_keys
    known = private.exchange is not None and keys is not None
    if row.core is None or not known or key != "CPU" or name == row.out:
        library.impl(name, kernel, key, with_keyset=True)
        return
    in_place = name.partition(".")[0].endswith("_")
    core = native.OverrideKernel(
        *row.core, in_place, partial(kernel, keys), partial(torch_kernel.call_boxed, keys)
    )
    _CORE_KERNELS[name] = core
    library.impl(name, core, key)


def _torch_kernel(name: str, key: str) -> Any:
    """Return torch's kernel, or None if this build of torch has none."""
    if "CUDA" in key and not torch.backends.cuda.is_built():
        return None
    return torch.library.get_kernel(f"aten::{name}", key)


def restore(library: torch.library.Library) -> None:
    """Remove the kernels, so that torch's run again."""
    private.destroy(library)
    with _COUNTING:
        ran, passed = _counts()
        _RAN.update(ran - _RAN)
        _PASSED.update(passed - _PASSED)
        _CORE_KERNELS.clear()
