"""The group functions in traced graphs.

For Dynamo, each function is one call. The call is traced after Dynamo, as calls to the operators
and to torch, with the checks of an eager call.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gatherum.groups import options, reducing, transforming


def reduce(
    values: Tensor, groups: Any, size: Any = None, func: Any = "sum", axis: Any = 0, **more: Any
) -> Any:
    """Reduce the values of each group; see `gatherum.groups.reduce`."""
    if not isinstance(func, (list, tuple)):
        return _reduce(values, groups, size, func, axis, **more)
    return {  # a node of a graph has no dict as its result
        name: _reduce(values, groups, size, name, axis, **options.keywords_for(name, more))
        for name in func
    }


@torch.compiler.allow_in_graph  # type: ignore[untyped-decorator]
def _reduce(values: Tensor, groups: Any, size: Any, func: Any, axis: Any, **more: Any) -> Any:
    return reducing.reduce(values, groups, size, func, axis, **more)


@torch.compiler.allow_in_graph  # type: ignore[untyped-decorator]
def transform(values: Tensor, groups: Any, *arguments: Any, **more: Any) -> Any:
    """Transform each value by its group; see `gatherum.groups.transform`."""
    return transforming.transform(values, groups, *arguments, **more)
