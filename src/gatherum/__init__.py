"""Gather and scatter on NumPy arrays: exact, checked, and the same bits on any number of threads.

Take from an array by index
    `gather` slices along an axis, `gather_elements` one element for every index, `gather_nd` by
    tuples of indices.
Put back, and combine what meets: set, add, mul, max, min, mean
    `scatter_slices`, `scatter_elements`, `scatter_nd`; `Accumulator` takes the updates in batches.
Do both at once, or many times
    `aggregate` reduces gathered rows into others without storing them; `prepare` checks and sorts
    the indices of a call once for many runs.
Inspect a call without running it
    `plan`, `explain`, `index_report`.
Settings
    `set_num_threads`, `get_num_threads`, `set_output_cache_limit`, `get_output_cache_limit`,
    `clear_output_cache`, `config`, `show_config`.
Call the core from C
    `get_include`, `get_library`.

Imported when first used: `gatherum.groups` (sums, means, extremes and more of groups of values),
`gatherum.files` (the operators on files larger than memory), `gatherum.torch`, `gatherum.jax` and
`gatherum.dask` (on their arrays), `gatherum.cuda` (on arrays of a GPU), `gatherum.onnx`,
`gatherum.directml`, and `gatherum.reference` (the operators as plain loops, to test against).
"""

from typing import TYPE_CHECKING

from .help_signatures import plain_help
from .startup import ends_at_once as _ends_at_once
from .startup import is_command as _is_command

try:
    with _ends_at_once(_is_command()):
        from . import dynamo as _tracing  # noqa: F401  # for torch.compile
        from .accumulator import Accumulator
        from .aggregate import aggregate
        from .config import config, show_config
        from .explain import Explanation, explain
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
        from .plan import Plan, plan
        from .prepare import Prepared, prepare
        from .scatters import scatter_elements, scatter_nd, scatter_slices
except ValueError as _wrong_setting:  # an environment variable
    # The command reports it in one line, but Python imports this package before its module. So the
    # first use of a name reports it.
    _refusal = str(_wrong_setting)
else:
    _refusal = ""

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

from .version import __version__

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
]

# The subpackages, which are imported when they are first used, and what each of them needs.
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

plain_help(globals())


def __dir__() -> list[str]:
    import importlib.util

    present = [name for name, needed in _SUBPACKAGES.items() if importlib.util.find_spec(needed)]
    return sorted([*__all__, *present])


if not TYPE_CHECKING:  # checkers know every name without it, and refuse others

    def __getattr__(name: str) -> object:
        if name in _SUBPACKAGES:
            import importlib

            return importlib.import_module(f"{__name__}.{name}")
        if _refusal and name in __all__:
            raise ValueError(_refusal)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
