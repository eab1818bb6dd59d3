"""Make ``torch.compile`` trace the tensor functions instead of the public functions.

Dynamo can trace Python but not the core, which the public functions call directly. A function can
have an attribute that names another function; Dynamo then calls that function instead. torch is
imported only when Dynamo calls that other function.

The attributes are private names of torch, tested with 2.13. If a version of torch ignores these
attributes, `torch.compile` breaks the graph at `gatherum.gather` and warns. The results are the
same, and the functions of `gatherum.torch` remain in the graph.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any


def _on_tensors(function: types.FunctionType, inside: tuple[str, ...]) -> Callable[..., Any]:
    name, untraced = function.__name__, _untraced(function)
    first = function.__code__.co_varnames[0]

    def call(*operands: Any, **attributes: Any) -> Any:
        import torch

        import gatherum.torch as on_tensors

        data = operands[0] if operands else attributes[first]
        if not isinstance(data, torch.Tensor):
            return untraced(*operands, **attributes)
        module: Any = on_tensors
        for name_part in inside:
            module = getattr(module, name_part)
        return getattr(module, name)(*operands, **attributes)

    return call


def _untraced(function: types.FunctionType) -> Callable[..., Any]:
    """Return a copy of a function for NumPy arrays; traced graphs break at the copy."""
    copied = types.FunctionType(function.__code__, function.__globals__, function.__name__,
                              function.__defaults__)  # fmt: skip
    copied.__kwdefaults__ = function.__kwdefaults__
    copied._torchdynamo_disable = True  # type: ignore[attr-defined]
    return copied


def follow_tensors(function: Any, *inside: str) -> None:
    """Let graphs call the function of the same name in `gatherum.torch` instead.

    `inside` names the submodules that contain the function.
    """
    traced = _on_tensors(function, inside)
    function._torchdynamo_inline = traced  # called in a compiled function
    function._torchdynamo_orig_callable = traced  # compiled directly
    function._torchdynamo_wrapper_id = id(function)
