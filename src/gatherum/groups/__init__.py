"""Reductions and transforms of groups of values, composed of the operators.

`reduce` returns one result for each group: sums, means, variances, maxima, minima, argmax, argmin,
first and last values, counts, quantiles. `transform` normalizes each value within its group.
`factorize` numbers keys such as strings. `aggregate` takes the same arguments and returns the same
results as numpy_groupies.
"""

# This package imports only _functions and the packages below it. Start with functions.py.

from gatherum._exports.help_signatures import plain_help
from gatherum._frameworks.torch_compile import follow_tensors

from .factorizing import factorize
from .numpy_groupies import aggregate
from .reducing import reduce
from .transforming import transform

__all__ = ["aggregate", "factorize", "reduce", "transform"]

follow_tensors(reduce, "functions", "groups")
follow_tensors(transform, "functions", "groups")
plain_help(globals())


def __dir__() -> list[str]:
    return list(__all__)
