"""The reference runs the six operators, `aggregate`, `gather_quantized`, and in `groups` the
functions over groups, as plain loops, from their definitions.

This is the oracle that the compiled core is tested against. It is slow, it
imports NumPy alone and it shares no code with the rest of the package. Items
are moved as so many plain bytes, because NumPy's own assignment may leave out
the padding of structured items; indices are resolved as Python integers, which
cannot overflow.

The arguments are those of the public functions without `out`, and so are the
exceptions: TypeError for a dtype or a non-integer attribute, ValueError for a
shape or an attribute out of range, IndexError for an index.
"""

from . import groups, operators
from .operators import *  # noqa: F403
from .quantized import gather_quantized

__all__ = ["gather_quantized", "groups"]
__all__ += operators.__all__


def __dir__() -> list[str]:
    return list(__all__)
