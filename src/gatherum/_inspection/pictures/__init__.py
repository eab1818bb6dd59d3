"""Pictures of calls: which cell of the data goes where.

Libraries of diagrams place nodes and edges, not cells of arrays; an SVG needs nothing installed.
"""

from .cells import CallValues
from .drawing import draw

__all__ = ["CallValues", "draw"]
