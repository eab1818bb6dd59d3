"""The reference implementation: the six operators, `aggregate`, `gather_quantized` and, in
`groups`, the functions over groups, as plain loops that follow the definitions of these functions.

The compiled core is tested against this oracle. It is slow, imports only NumPy
and shares no code with the rest of the package. Items are moved as plain bytes,
because NumPy's assignment may omit the padding of structured items. Indices are
resolved as Python integers, which cannot overflow.

The arguments are the same as in the public functions, without `out`. The
exceptions are also the same: TypeError for a dtype or a non-integer attribute,
ValueError for a shape or an attribute out of range, IndexError for an index.
"""

from . import groups, operators
from .operators import *  # noqa: F403
from .quantized import gather_quantized

__all__ = ["gather_quantized", "groups"]
__all__ += operators.__all__


def __dir__() -> list[str]:
    return list(__all__)
