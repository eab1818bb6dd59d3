"""The package's access to the compiled core: calls, level, threads, output memory.

Each function that runs a call accepts one kind of operands:

====================  ============================================  =========================
Function              Operands                                      Used by
====================  ============================================  =========================
`dispatch_call`       NumPy arrays; the callback `convert_and_run`  the six functions, torch,
                      converts other values or calls an adapter     `plan.apply`
`run_normalized`      NumPy arrays that Python has converted        `convert_and_run`
`run_plan`            a plan and arrays                             `Plan.run`
`run_on_views`        views of addresses                            torch
`run_on_tensors`      tensors that are plain arrays in memory       torch
`run_if_plain`        any tensors; returns None for those that      torch
                      torch must handle, such as subclasses and
                      lazily negated tensors
`scatter_into_zeros`  plain tensors                                 torch
`OverrideKernel`      the operands of an operator of torch; calls   torch
                      that it does not remember run in Python
`coalesce`            the plain indices and values of a sparse      torch
                      tensor
`differentiate`       tensors                                       torch
`extremes`            a plan, and arrays or views of addresses      `extremes`
`skip_nan`            a plan, and arrays or views of addresses      `groups`
`spreads`             a plan, and arrays or views of addresses      `groups`
`xla_handler`         buffers of a compiled program                 jax
`xla_device_handler`  the same, on a CUDA device                    jax
`cached_call_entry`   JAX arrays, in an eager call with the         jax
                      attributes of the last call
====================  ============================================  =========================

`cached_call_entry` makes an eager call take 1.1 times as long as ``jnp.take``, instead of 1.4 times
(``benchmarks/jax_bench.py``). All arguments are positional. Attributes of calls on views and
tensors are plain values. The last arguments of such calls are ``fill``, the bytes of an item or
None for zeros, and ``out``. `run_on_views` also takes ``allocate``, which returns the address of
memory for a result.

Modules outside of `_system` import from `_core` only enumerations (`Reduction`, `Value`, `Mode`,
`DType`, `Gradient`) and functions that compute facts about a call from its description, such as
`is_exact` and `lower`. `_model`, which this package may import, needs these facts too. All
functions that run a call, or that change a setting or the state of the core, are imported from this
module.
"""

from __future__ import annotations

import atexit
import copyreg
import functools
import operator
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from gatherum import _core

from .text_numbers import integer_of

Program = _core.Program
describe = _core.describe
algorithm_names = _core.algorithm_names
thresholds = _core.thresholds
set_thresholds = _core.set_thresholds
Fold = _core.Fold
RowCache = _core.RowCache
RowLists = _core.RowLists
make_lists = _core.make_lists
fold_pointed = _core.fold_pointed
make_pointer = _core.make_pointer
make_row_cache = _core.make_row_cache
RequestCounts = _core.RequestCounts
make_request_counts = _core.make_request_counts
MemoryTable = _core.MemoryTable
make_memory_table = _core.make_memory_table
gather_in_memory = _core.gather_in_memory
new_result = _core.new_result
map_items = _core.map
cumulate = _core.cumulate
order = _core.order
dequantize = _core.dequantize
dispatch_call = _core.dispatch_call
run_normalized = _core.run_normalized
run_plan = _core.run_plan
run_on_views = _core.run_on_views
run_on_tensors = _core.run_on_tensors
run_if_plain = _core.run_if_plain
scatter_into_zeros = _core.scatter_into_zeros
coalesce = _core.coalesce
OverrideKernel = _core.OverrideKernel
differentiate = _core.differentiate
extremes = _core.extremes
skip_nan = _core.skip_nan
spreads = _core.spreads
xla_handler = _core.xla_handler
xla_device_handler = _core.xla_device_handler
set_xla_device_calls = _core.set_xla_device_calls
cached_call_entry = _core.cached_call_entry
remember_call = _core.remember_call
accelerate = _core.accelerate
View = _core.View
set_torch = _core.set_torch
set_torch_storage = _core.set_torch_storage
set_torch_cuda = _core.set_torch_cuda
scatter_ordered = _core.scatter_ordered
set_device_arrays = _core.set_device_arrays
add_device_type = _core.add_device_type
DeviceProgram = _core.DeviceProgram
has_cuda_driver = _core.has_cuda_driver
tensor_route = _core.tensor_route
first_outside_storage = _core.first_outside_storage
callback_names = _core.callback_names
set_callbacks = _core.set_callbacks
clear_plans = _core.clear_plans
element_numbers = _core.element_numbers
first_invalid = _core.first_invalid
read_file_rows = _core.read_file_rows
file_rows_bridge = _core.file_rows_bridge
start_writing = _core.start_writing
read_at = _core.read_at
write_at = _core.write_at
peak_memory = _core.peak_memory
level = _core.level
cached_output_bytes = _core.cached_bytes
set_threads = _core.set_threads
get_num_threads = _core.get_threads
set_cache_limit = _core.set_cache_limit
get_cache_limit = _core.get_cache_limit
clear_cache = _core.clear_cache

_DEFAULT_CACHE = 512 << 20
MOST_THREADS = 1024
CACHE_END = 1 << 62  # limits of the output cache are less


read_program = Program.from_bytes  # pickles of earlier versions have this name


class FloatMode:
    """A context in which arithmetic rounds to nearest and keeps subnormal numbers."""

    __slots__ = ("_previous",)

    def __enter__(self) -> None:
        self._previous = _core.set_nearest()

    def __exit__(self, *error: object) -> None:
        _core.set_float_control(self._previous)


def _reduce(program: Program) -> tuple[Callable[..., Program], tuple[type[Program]]]:
    return operator.methodcaller("from_bytes", bytes(program)), (Program,)


copyreg.pickle(Program, _reduce)


def get_include() -> str:
    """Return the folder of ``gatherum.h``, the C interface of the core.

    Returns
    -------
    str
        A path for a compiler's ``-I``.
    """
    return os.path.join(os.path.dirname(_core.__file__), "include")


def get_library() -> str:
    """Return the path of the core as a shared library, which does not need Python.

    Returns
    -------
    str
        The file to link C programs with. ``gatherum.h`` declares its functions.
    """
    names = {"darwin": "libgatherum.dylib", "win32": "gatherum.lib"}
    name = names.get(sys.platform, "libgatherum.so")
    return os.path.join(os.path.dirname(_core.__file__), "lib", name)


def available_levels() -> tuple[str, ...]:
    """Return the instruction-set levels that this processor and build support, best first."""
    return tuple(_core.available_levels())


_Cached = TypeVar("_Cached", bound="functools._lru_cache_wrapper[Any]")


def emptied_at_exit(cache: _Cached) -> _Cached:
    """Decorate a function so that its cache of plans is cleared when the interpreter exits."""
    atexit.register(cache.cache_clear)
    return cache


def _from_environment(name: str, default: int, low: int, high: int) -> int:
    text = os.environ.get(name)
    if text is None or text.strip() == "":
        return default
    value = integer_of(text)
    if value is None:
        raise ValueError(f"gatherum: {name} must be an integer, got {text!r}")
    if not low <= value <= high:
        raise ValueError(f"gatherum: {name} must be in [{low}, {high}], got {value}")
    return value


def _start() -> None:
    forced = os.environ.get("GATHERUM_ISA", "")
    if forced not in ("", *available_levels()) or not _core.choose_level(forced):
        have = ", ".join(available_levels())
        raise ValueError(f"gatherum: GATHERUM_ISA must be one of {have} here, got {forced!r}")
    threads = min(_core.usable_processors(), MOST_THREADS)
    _core.set_threads(_from_environment("GATHERUM_NUM_THREADS", threads, 1, MOST_THREADS))
    cache = _from_environment("GATHERUM_OUTPUT_CACHE", _DEFAULT_CACHE, 0, CACHE_END - 1)
    _core.set_cache_limit(cache)


def _loading(name: str) -> Callable[..., Any]:
    """Return a callback for the core that imports `callbacks` on its first call."""

    def callback(*arguments: Any) -> Any:
        return getattr(import_module("gatherum._functions.callbacks"), name)(*arguments)

    return callback


_start()
set_callbacks({name: _loading(name) for name in callback_names()})
# Plans are Python objects, so they must be released before the interpreter exits.
atexit.register(_core.release_plans)
