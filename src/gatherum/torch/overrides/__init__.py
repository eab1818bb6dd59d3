"""Run torch's own gather and scatter operators in a fixed order, by overriding their kernels.

table.py lists the operators and the functions that override them, and switch.py contains the public
functions. This package imports only torch/functions and the packages below it. Start with table.py.
"""

from .switch import Report, is_reproducible, reproducible, set_reproducible

__all__ = ["Report", "is_reproducible", "reproducible", "set_reproducible"]
