"""Gather and scatter on arrays: five operators, one published meaning, the same bits for any
number of threads."""

from .native import (
    clear_output_cache,
    get_num_threads,
    get_output_cache_limit,
    set_num_threads,
    set_output_cache_limit,
)
from .ops import gather, gather_elements, gather_nd, scatter_elements, scatter_nd
from .plan import Plan, plan

__version__ = "0.1.0"
