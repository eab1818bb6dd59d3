"""Moved: run ``gatherum verify``, or use the test vectors of `gatherum.vectors`.

Removed in version 0.4.
"""

import warnings

from ._command.verify import Verification, verify

__all__ = ["Verification", "verify"]
warnings.warn(
    "gatherum.verify has moved: run the command `gatherum verify`, or use gatherum.vectors",
    DeprecationWarning,
    stacklevel=2,
)
