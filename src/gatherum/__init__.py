"""Gather and scatter on arrays: exact, checked, bit-for-bit equal on any number of threads.

Take from an array by index
    `gather` takes slices along an axis, `gather_elements` one element for each index, `gather_nd`
    slices by index tuples.
Write or reduce into an array: none (replace), add, mul, max, min, mean, fsum, fmean
    `scatter_slices`, `scatter_elements`, `scatter_nd`. `Accumulator` accepts updates in batches.
Gather and scatter in one call, or repeat a call
    `aggregate` reduces gathered rows without storing them. `prepare` checks and sorts the indices
    of a call once for many runs.
Take from a quantized array
    `gather_quantized` takes slices and dequantizes them in one pass.
Inspect a call without running it
    `plan`, `explain`, `index_report`.
Test other implementations
    `vectors` yields calls with expected results, each with the rule that it tests.
Settings
    `set_num_threads`, `get_num_threads`, `set_output_cache_limit`, `get_output_cache_limit`,
    `clear_output_cache`, `config`, `show_config`.
Call the core from C
    `get_include`, `get_library`.

Subpackages: `gatherum.groups` (sums, means, maxima and other reductions of groups of values),
`gatherum.files` (the operators on files larger than memory), `gatherum.torch`, `gatherum.jax` and
`gatherum.dask` (on arrays of these frameworks), `gatherum.cuda` (on GPU arrays), `gatherum.onnx`,
`gatherum.directml`, and `gatherum.reference` (the operators as plain loops, to test against).

``import gatherum`` loads nothing else. Each name is imported on first use; the first one also
imports NumPy and the core.
"""

from typing import TYPE_CHECKING

from .version import __version__

if TYPE_CHECKING:
    from . import cuda as cuda
    from . import dask as dask
    from . import directml as directml
    from . import files as files
    from . import frameworks as frameworks
    from . import groups as groups
    from . import jax as jax
    from . import onnx as onnx
    from . import reference as reference
    from . import torch as torch
    from ._functions.accumulator import Accumulator
    from ._functions.aggregation import aggregate
    from ._functions.gathers import gather, gather_elements, gather_nd
    from ._functions.index_reports import IndexReport, index_report
    from ._functions.prepared import Prepared, prepare
    from ._functions.quantized import gather_quantized
    from ._functions.scatters import scatter_elements, scatter_nd, scatter_slices
    from ._functions.settings import (
        clear_output_cache,
        config,
        get_num_threads,
        get_output_cache_limit,
        set_num_threads,
        set_output_cache_limit,
        show_config,
    )
    from ._inspection.explanations import Explanation, explain
    from ._plans.plans import Plan, plan
    from ._system.native import get_include, get_library
    from .conformance import vectors

__all__ = [
    "Accumulator",
    "Explanation",
    "IndexReport",
    "Plan",
    "Prepared",
    "__version__",
    "aggregate",
    "clear_output_cache",
    "config",
    "explain",
    "gather",
    "gather_elements",
    "gather_nd",
    "gather_quantized",
    "get_include",
    "get_library",
    "get_num_threads",
    "get_output_cache_limit",
    "index_report",
    "plan",
    "prepare",
    "scatter_elements",
    "scatter_nd",
    "scatter_slices",
    "set_num_threads",
    "set_output_cache_limit",
    "show_config",
    "vectors",
]

# The module of each public name.
_MODULES = {
    "Accumulator": "gatherum._functions.accumulator",
    "aggregate": "gatherum._functions.aggregation",
    "config": "gatherum._functions.settings",
    "show_config": "gatherum._functions.settings",
    "Explanation": "gatherum._inspection.explanations",
    "explain": "gatherum._inspection.explanations",
    "gather": "gatherum._functions.gathers",
    "gather_elements": "gatherum._functions.gathers",
    "gather_nd": "gatherum._functions.gathers",
    "gather_quantized": "gatherum._functions.quantized",
    "IndexReport": "gatherum._functions.index_reports",
    "index_report": "gatherum._functions.index_reports",
    "clear_output_cache": "gatherum._functions.settings",
    "get_include": "gatherum._system.native",
    "get_library": "gatherum._system.native",
    "get_num_threads": "gatherum._functions.settings",
    "get_output_cache_limit": "gatherum._functions.settings",
    "set_num_threads": "gatherum._functions.settings",
    "set_output_cache_limit": "gatherum._functions.settings",
    "Plan": "gatherum._plans.plans",
    "plan": "gatherum._plans.plans",
    "Prepared": "gatherum._functions.prepared",
    "prepare": "gatherum._functions.prepared",
    "scatter_elements": "gatherum._functions.scatters",
    "scatter_nd": "gatherum._functions.scatters",
    "scatter_slices": "gatherum._functions.scatters",
    "vectors": "gatherum.conformance",
}
# The first operator that is used imports all of them. Otherwise a forked child could wait forever
# for a module that another thread of its parent was importing.
_OPERATORS = ("gatherum._functions.gathers", "gatherum._functions.scatters")
# The subpackages, and the package that each one requires.
_SUBPACKAGES = {
    "cuda": "cuda",
    "dask": "dask",
    "directml": "numpy",
    "files": "numpy",
    "frameworks": "numpy",
    "groups": "numpy",
    "jax": "jax",
    "onnx": "onnx",
    "reference": "numpy",
    "torch": "torch",
}


def __dir__() -> list[str]:
    import importlib.util

    present = [name for name, needed in _SUBPACKAGES.items() if importlib.util.find_spec(needed)]
    return sorted([*__all__, *present])


if not TYPE_CHECKING:  # without `__getattr__`, type checkers report unknown names

    def __getattr__(name: str) -> object:
        if name not in _SUBPACKAGES and name not in _MODULES:
            from ._exports.counterparts import counterpart_hint

            raise AttributeError(
                f"module {__name__!r} has no attribute {name!r}{counterpart_hint(name)}"
            )
        import importlib

        from ._exports.help_signatures import plain_signatures

        if name in _SUBPACKAGES:
            return importlib.import_module(f"{__name__}.{name}")
        modules = _OPERATORS if _MODULES[name] in _OPERATORS else (_MODULES[name],)
        for attribute, module in _MODULES.items():
            if module in modules:
                value = getattr(importlib.import_module(module), attribute)
                plain_signatures(value)
                globals()[attribute] = value
        return globals()[name]
