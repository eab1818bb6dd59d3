"""Gather and scatter on arrays.

Six operators, one published meaning, the same bits for any number of threads.
"""

import os
import sys
from typing import TYPE_CHECKING

try:
    from . import tracing as _tracing  # noqa: F401  # for torch.compile
    from .accumulator import Accumulator
    from .config import show_config
    from .explain import Explanation, explain
    from .gathers import gather, gather_elements, gather_nd
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
    from .report import IndexReport, index_report
    from .scatters import scatter_elements, scatter_nd, scatter_slices
except ValueError as _wrong_setting:  # an environment variable
    # The command tells it in one line, but Python imports this package before the command's module.
    # Then, and for what else runs under such a name, the first use of a name tells it.
    if os.path.basename(sys.argv[0] if sys.argv else "") not in ("gatherum", "gatherum.exe", "-m"):
        raise
    _refusal = str(_wrong_setting)
    if not TYPE_CHECKING:

        def __getattr__(name: str) -> object:
            if name in __all__:
                raise ValueError(_refusal)
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


from .version import __version__

__all__ = [
    "Accumulator",
    "Explanation",
    "IndexReport",
    "Plan",
    "__version__",
    "clear_output_cache",
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
    "scatter_elements",
    "scatter_nd",
    "scatter_slices",
    "set_num_threads",
    "set_output_cache_limit",
    "show_config",
]
