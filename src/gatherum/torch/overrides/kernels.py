"""Override torch's kernels with the functions in the table, and restore the kernels.

A function describes a call. On the host, the core remembers the description. It then runs, without
Python, later calls that differ only in the values of their tensors (`OverrideKernel`).
"""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gatherum._system import native
from gatherum.torch import private
from gatherum.torch.dtypes import WIDE_UNSIGNED

from .embeddings import Bags, run_bags
from .scatter_calls import Declined, Invalid, Ordered, Scatter, core_fields, run
from .table import ROWS, Row

# How often each operator ran here, and how often torch's kernel ran instead.
_RUNS_HERE: Counter[str] = Counter()
_RUNS_IN_TORCH: Counter[str] = Counter()
_COUNT_LOCK = threading.Lock()
_CORE_KERNELS: dict[str, native.OverrideKernel] = {}  # they count their runs, and remember calls


def counts() -> tuple[Counter[str], Counter[str]]:
    """Return the number of calls to each operator, on gatherum's and on torch's kernels."""
    with _COUNT_LOCK:
        runs = Counter({name: kernel.runs for name, kernel in _CORE_KERNELS.items()})
        torch_runs = Counter({name: kernel.passed for name, kernel in _CORE_KERNELS.items()})
        return _RUNS_HERE + runs, _RUNS_IN_TORCH + torch_runs


def _kernel(
    name: str, complete: Callable[..., Any], torch_kernel: Any, device: bool
) -> Callable[..., Any]:
    """Return a kernel that runs `complete`, or torch's kernel if it does not support the call."""

    def kernel(keyset: Any, *args: Any, **options: Any) -> Any:
        raises_error_of_call = False
        try:
            result = complete(args, options)
        except Declined as reason:
            raises_error_of_call = isinstance(reason, Invalid)
        except torch.OutOfMemoryError:
            raise
        except (IndexError, MemoryError, TypeError, ValueError, RuntimeError) as error:
            # The call is invalid, or gatherum does not support it: TypeError for dtypes such as
            # complex32, ValueError for shapes and overlapping memory, torch's RuntimeError for
            # operands that do not broadcast, IndexError for indices and dimensions, MemoryError
            # from the core. Nothing is written yet, so torch's kernel can run the call or raise its
            # error. On a device, an index out of bounds would make the device unusable for the
            # process.
            raises_error_of_call = isinstance(error, IndexError)
            if device and raises_error_of_call:
                raise
        else:
            with _COUNT_LOCK:
                _RUNS_HERE[name] += 1
            return result
        with _COUNT_LOCK:
            _RUNS_IN_TORCH[name] += 1
        if raises_error_of_call:
            return _run_for_error(name, torch_kernel, keyset, args, options)
        return torch_kernel.call_boxed(keyset, *args, **options)

    private.leave_untraced(kernel)
    return kernel


def _core_first(
    name: str, run_in_core: Callable[..., Any], kernel: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a kernel that runs `kernel` if `run_in_core` returns None."""

    def core_first(keyset: Any, *args: Any, **options: Any) -> Any:
        try:
            result = run_in_core(*args, **options)
        except (MemoryError, RuntimeError):
            result = None
        if result is None:
            return kernel(keyset, *args, **options)
        with _COUNT_LOCK:
            _RUNS_HERE[name] += 1
        return result

    private.leave_untraced(core_first)
    return core_first


def _run_for_error(name: str, torch_kernel: Any, keyset: Any, args: Any, options: Any) -> Any:
    """Run an invalid call on torch's kernel without torch's deterministic mode.

    The kernel then raises the error of the call, not an error about determinism. torch accepts
    invalid indices of a tensor without elements, and calls without updates in dtypes for which it
    has no kernels. If it accepts any other call, raise RuntimeError, because the order of the
    updates was not fixed.
    """
    only_warns = torch.is_deterministic_algorithms_warn_only_enabled()
    enabled = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)
    try:
        result = torch_kernel.call_boxed(keyset, *args, **options)
    finally:
        torch.use_deterministic_algorithms(enabled, warn_only=only_warns)
    if isinstance(result, Tensor) and (not result.numel() or result.dtype in WIDE_UNSIGNED):
        return result
    raise RuntimeError(
        f"reproducible: {name}: torch's kernel accepted operands that gatherum rejected, and may "
        "have applied updates in any order"
    )


class _Overload(NamedTuple):
    """One form of an operator."""

    row: Row
    name: str
    remembers: bool = False  # the core has a kernel that remembers calls

    def complete(self, args: Any, options: dict[str, Any]) -> Any:
        """Run a call. Return the result that torch returns."""
        data, out = args[0], options.get("out")
        dtype = data.dtype
        if dtype in WIDE_UNSIGNED:  # torch has no kernels for them
            raise Invalid
        if dtype.itemsize == 1 and dtype.is_floating_point:  # it has few
            raise Declined
        if out is not None:
            _check_out(out, args)
        elif self.name == self.row.in_place and _shares_memory_with(data, args[1:]):
            raise Invalid
        result = description = self._describe(args, options)
        if isinstance(description, Bags):
            self._remember(args, options, description)
            return run_bags(description)
        if isinstance(description, Scatter):
            target = self._target(description, data, out)
            result = run(description, target)
            if out is None or target is not None:
                self._remember(args, options, description, target)
            if target is not None:
                return data if out is None else out
        if self.name == self.row.in_place:
            return data if result is data else data.copy_(result)
        return _as_torch_returns(result, data, out)

    def _describe(self, args: Any, options: dict[str, Any]) -> Any:
        try:
            if not options:
                return self.row.describe(*args)
            return self.row.describe(
                *args, **{name: options[name] for name in options if name != "out"}
            )
        except Ordered:
            self._remember(args, options, None)
            raise

    def _target(self, call: Scatter, data: Tensor, out: Tensor | None) -> Any:
        """Return the tensor to which a scatter writes the result of the call, or None."""
        if self.name == self.row.in_place:
            return call.data
        return out if out is not None and out.dim() and out.shape == data.shape else None

    def _remember(
        self, args: Any, options: Any, call: Scatter | Bags | None, target: Any = None
    ) -> None:
        """Let the core run equal calls. Without a description, it calls torch's kernel."""
        if not self.remembers:
            return
        core = _CORE_KERNELS[self.name]
        in_place = self.name == self.row.in_place
        if isinstance(call, Scatter) and in_place and _has_no_indices(call, args[1:]):
            core.remember_unchanged(args, options)
        elif isinstance(call, Scatter):
            core.remember_scatter(args, options, core_fields(call), target)
        elif isinstance(call, Bags):
            core.remember_bags(args, options, call)
        else:
            core.remember_torch(args, options)


def _tensors_in(operands: Any) -> list[Tensor]:
    """Return the tensors among the operands, including those in lists."""
    lists = (operand if isinstance(operand, list) else [operand] for operand in operands)
    return [value for values in lists for value in values if isinstance(value, Tensor)]


def _has_no_indices(call: Scatter, others: Any) -> bool:
    """Return True if no call with operands of these shapes has an index."""
    first_index = call.indices[0] if isinstance(call.indices, tuple) else call.indices
    may_be_masks = any(tensor.dtype in (torch.bool, torch.uint8) for tensor in _tensors_in(others))
    return not (first_index.numel() or call.segments or may_be_masks)


def _shares_memory_with(data: Tensor, operands: Any) -> bool:
    """Return True if torch reports that an operand shares memory with `data`, which is written."""
    tensors = [tensor for tensor in _tensors_in(operands) if private.share_storage(data, tensor)]
    return any(tensor is data or _intersect(tensor, data) for tensor in tensors)


def _intersect(first_tensor: Tensor, second_tensor: Tensor) -> bool:
    """Return True if two tensors are in C order and share memory."""
    (first, size), (second, other_size) = (
        (tensor.data_ptr(), tensor.numel() * tensor.element_size())
        for tensor in (first_tensor, second_tensor)
    )
    intersects: bool = first < second + other_size and second < first + size
    return intersects and first_tensor.is_contiguous() and second_tensor.is_contiguous()


def _check_out(out: Tensor, args: Any) -> None:
    if out.dtype is not args[0].dtype or out.device != args[0].device:
        raise Declined
    if any(step == 0 and size > 1 for step, size in zip(out.stride(), out.shape, strict=True)):
        raise Invalid
    tensors = [value for value in args[1:] if isinstance(value, Tensor)]
    if any(private.share_storage(out, tensor) for tensor in tensors):
        raise Declined


def _as_torch_returns(result: Tensor, data: Tensor, out: Tensor | None) -> Tensor:
    """Return a result in the shape that torch returns, in `out` if it is not None."""
    if result.dim() and not data.dim():
        result = result.view(())
    if out is None:
        return result.clone() if result is data else result
    if out.shape != result.shape:
        return torch.ops.aten.clone.out(result, out=out)  # which resizes `out`
    return out.copy_(result)


def override() -> torch.library.Library:
    """Register the kernels of the table. Return the library that holds them."""
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about overridden kernels
        for row in ROWS:
            for name in filter(None, (row.new, row.in_place, row.out)):
                for key in row.keys:
                    _register(library, _Overload(row, name), key)
    return library


def _register(library: torch.library.Library, overload: _Overload, key: str) -> None:
    """Register a kernel for a key. On the host, the core runs the calls that it remembers."""
    name, keys = overload.name, private.cpu_keys
    torch_kernel = _torch_kernel(name, key)
    if torch_kernel is None:
        return
    if private.exchange is None or keys is None or key != "CPU":
        kernel = _kernel(name, overload.complete, torch_kernel, "CUDA" in key)
        if overload.row.run_in_core is not None and "CUDA" not in key:
            kernel = _core_first(name, overload.row.run_in_core, kernel)
        library.impl(name, kernel, key, with_keyset=True)
        return
    core = _CORE_KERNELS.setdefault(name, native.OverrideKernel())
    kernel = _kernel(name, overload._replace(remembers=True).complete, torch_kernel, False)
    core.use(partial(kernel, keys), partial(torch_kernel.call_boxed, keys))
    library.impl(name, core, key)


def _torch_kernel(name: str, key: str) -> Any:
    """Return torch's kernel, or None if this build of torch has none."""
    if "CUDA" in key and not torch.backends.cuda.is_built():
        return None
    return torch.library.get_kernel(f"aten::{name}", key)


restore = private.destroy  # removes the kernels of a library, so that torch's run again
