"""Gather and scatter on arrays: exact, checked, and the same bits on any number of threads.

Take from an array by index
    `gather` slices along an axis, `gather_elements` one element for every index, `gather_nd` by
    tuples of indices.
Put back, and combine what meets: set, add, mul, max, min, mean, fsum, fmean
    `scatter_slices`, `scatter_elements`, `scatter_nd`; `Accumulator` takes the updates in batches.
Do both at once, or many times
    `aggregate` reduces gathered rows into others without storing them; `prepare` checks and sorts
    the indices of a call once for many runs.
Take from a quantized array
    `gather_quantized` takes slices and dequantizes them in one pass.
Inspect a call without running it
    `plan`, `explain`, `index_report`.
Test others against it
    `vectors` yields calls with the oracle's answers, each with the rule that it tests.
Settings
    `set_num_threads`, `get_num_threads`, `set_output_cache_limit`, `get_output_cache_limit`,
    `clear_output_cache`, `config`, `show_config`.
Call the core from C
    `get_include`, `get_library`.

Subpackages: `gatherum.groups` (sums, means, extremes and more of groups of values),
`gatherum.files` (the operators on files larger than memory), `gatherum.torch`, `gatherum.jax` and
`gatherum.dask` (on their arrays), `gatherum.cuda` (on arrays of a GPU), `gatherum.onnx`,
`gatherum.directml`, and `gatherum.reference` (the operators as plain loops, to test against).

The import itself loads nothing. Each name is imported when it is first used, NumPy and the core
with the first of them.
"""

from typing import TYPE_CHECKING

from .version import __version__

if TYPE_CHECKING:
    from . import cuda as cuda
    from . import dask as dask
    from . import directml as directml
    from . import files as files
    from . import groups as groups
    from . import jax as jax
    from . import onnx as onnx
    from . import reference as reference
    from . import torch as torch
    from .accumulator import Accumulator
    from .aggregation import aggregate
    from .configuration import config, show_config
    from .conformance import vectors
    from .explanations import Explanation, explain
    from .gathers import gather, gather_elements, gather_nd
    from .index_reports import IndexReport, index_report
    from .native import (
        clear_output_cache,
        get_include,
        get_library,
        get_num_threads,
        get_output_cache_limit,
        set_num_threads,
        set_output_cache_limit,
    )
    from .plans import Plan, plan
    from .prepared import Prepared, prepare
    from .quantized import gather_quantized
    from .scatters import scatter_elements, scatter_nd, scatter_slices

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
    "Accumulator": "gatherum.accumulator",
    "aggregate": "gatherum.aggregation",
    "config": "gatherum.configuration",
    "show_config": "gatherum.configuration",
    "Explanation": "gatherum.explanations",
    "explain": "gatherum.explanations",
    "gather": "gatherum.gathers",
    "gather_elements": "gatherum.gathers",
    "gather_nd": "gatherum.gathers",
    "gather_quantized": "gatherum.quantized",
    "IndexReport": "gatherum.index_reports",
    "index_report": "gatherum.index_reports",
    "clear_output_cache": "gatherum.native",
    "get_include": "gatherum.native",
    "get_library": "gatherum.native",
    "get_num_threads": "gatherum.native",
    "get_output_cache_limit": "gatherum.native",
    "set_num_threads": "gatherum.native",
    "set_output_cache_limit": "gatherum.native",
    "Plan": "gatherum.plans",
    "plan": "gatherum.plans",
    "Prepared": "gatherum.prepared",
    "prepare": "gatherum.prepared",
    "scatter_elements": "gatherum.scatters",
    "scatter_nd": "gatherum.scatters",
    "scatter_slices": "gatherum.scatters",
    "vectors": "gatherum.conformance",
}
# The first operator that is used imports all of them: a child of a fork would wait forever for what
# another thread of its parent was importing.
_OPERATORS = ("gatherum.gathers", "gatherum.scatters")
# The subpackages, and what each of them needs.
_SUBPACKAGES = {
    "cuda": "cuda",
    "dask": "dask",
    "directml": "numpy",
    "files": "numpy",
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


if not TYPE_CHECKING:  # checkers know every name without it, and refuse others

    def __getattr__(name: str) -> object:
        if name not in _SUBPACKAGES and name not in _MODULES:
            from .counterparts import counterpart_hint

            raise AttributeError(
                f"module {__name__!r} has no attribute {name!r}{counterpart_hint(name)}"
            )
        import importlib

        from .help_signatures import plain_signatures

        if name in _SUBPACKAGES:
            return importlib.import_module(f"{__name__}.{name}")
        modules = _OPERATORS if _MODULES[name] in _OPERATORS else (_MODULES[name],)
        for each, module in _MODULES.items():
            if module in modules:
                found = getattr(importlib.import_module(module), each)
                plain_signatures(found)
                globals()[each] = found
        return globals()[name]
