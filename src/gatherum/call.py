"""Moved: import `ArraySpec` and `Attributes` from `gatherum.frameworks`. Removed in version 0.4."""

import warnings

from ._model.call import ArraySpec, Attributes

__all__ = ["ArraySpec", "Attributes"]
warnings.warn(
    "gatherum.call has moved: import ArraySpec and Attributes from gatherum.frameworks",
    DeprecationWarning,
    stacklevel=2,
)
