"""Pictures of calls: which cell of the data goes where."""

from .cells import Operands
from .drawing import draw

__all__ = ["Operands", "draw"]
