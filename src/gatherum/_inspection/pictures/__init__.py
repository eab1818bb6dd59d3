"""Pictures of calls: the cells of the data and their destinations.

Diagram libraries draw nodes and edges, not cells of arrays; SVG needs no library.
"""

from .cells import CallValues
from .drawing import draw
from .sketch import sketch

__all__ = ["CallValues", "draw", "sketch"]
