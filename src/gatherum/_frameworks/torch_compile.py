"""Give ``torch.compile`` the six functions on tensors in place of the public ones.

It follows Python, but not the calls of the core that the functions are, and takes another function
in their place where an attribute names one. Nothing is imported before it does.

The attributes are private names of torch, tested with 2.13. A torch that does not read them breaks
its graph at `gatherum.gather`, with a warning and the same results; the functions of
`gatherum.torch` stay in the graph.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any


def _on_tensors(function: types.FunctionType, inside: tuple[str, ...]) -> Callable[..., Any]:
    name, plain = function.__name__, _untraced(function)
    first = function.__code__.co_varnames[0]

    def call(*operands: Any, **attributes: Any) -> Any:
        import torch

        import gatherum.torch as on_tensors

        data = operands[0] if operands else attributes[first]
        if not isinstance(data, torch.Tensor):
            return plain(*operands, **attributes)
        module: Any = on_tensors
        for part in inside:
            module = getattr(module, part)
        return getattr(module, name)(*operands, **attributes)

    return call


def _untraced(function: types.FunctionType) -> Callable[..., Any]:
    """Return the same function, which a graph breaks at: for arrays of NumPy."""
    same = types.FunctionType(function.__code__, function.__globals__, function.__name__,
                              function.__defaults__)  # fmt: skip
    same.__kwdefaults__ = function.__kwdefaults__
    same._torchdynamo_disable = True  # type: ignore[attr-defined]
    return same


def follow_tensors(function: Any, *inside: str) -> None:
    """Let a graph take the function of the same name in `gatherum.torch` for this one, or in a
    module inside of it.
    """
    traced = _on_tensors(function, inside)
    function._torchdynamo_inline = traced  # inside of a function that is compiled
    function._torchdynamo_orig_callable = traced  # compiled itself
    function._torchdynamo_wrapper_id = id(function)
