"""What ``torch.compile`` sees of the six functions: those on tensors.

It follows Python, but not the calls of the core that the functions are, and takes another function
in their place where an attribute names one. Nothing is imported before it does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import gathers, scatters
from .operators import OPERATORS


def _on_tensors(name: str) -> Callable[..., Any]:
    def call(*operands: Any, **attributes: Any) -> Any:
        import gatherum.torch as room

        return getattr(room, name)(*operands, **attributes)

    return call


for _operator in OPERATORS.values():
    _function = getattr(scatters if _operator.scatters else gathers, _operator.name)
    _function._torchdynamo_inline = _on_tensors(_operator.name)
