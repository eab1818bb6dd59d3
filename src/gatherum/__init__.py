"""Gather and scatter on arrays.

Five operators, one published meaning, the same bits for any number of threads.
"""

from .config import show_config
from .native import (
    clear_output_cache,
    get_num_threads,
    get_output_cache_limit,
    set_num_threads,
    set_output_cache_limit,
)
from .ops import gather, gather_elements, gather_nd, scatter_elements, scatter_nd
from .plan import Plan, plan
from .report import IndexReport, index_report
from .version import __version__

__all__ = [
    "IndexReport",
    "Plan",
    "__version__",
    "clear_output_cache",
    "gather",
    "gather_elements",
    "gather_nd",
    "get_num_threads",
    "get_output_cache_limit",
    "index_report",
    "plan",
    "scatter_elements",
    "scatter_nd",
    "set_num_threads",
    "set_output_cache_limit",
    "show_config",
]
