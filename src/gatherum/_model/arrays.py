"""Names for the types of arrays in annotations."""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

NumpyArray: TypeAlias = NDArray[Any]
AnyArray: TypeAlias = Any  # an array of any framework
