"""The group functions in traced graphs. Each is one call, which is traced after Dynamo.

After Dynamo, they consist of calls of the operators and of torch, with the checks of an eager call.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gatherum.groups import reducing


@torch.compiler.allow_in_graph  # type: ignore[untyped-decorator]
def reduce(values: Tensor, groups: Any, *arguments: Any, **more: Any) -> Any:
    """Reduce the values of each group; see `gatherum.groups.reduce`."""
    return reducing.reduce(values, groups, *arguments, **more)


@torch.compiler.allow_in_graph  # type: ignore[untyped-decorator]
def transform(values: Tensor, groups: Any, *arguments: Any, **more: Any) -> Any:
    """Transform each value by its group; see `gatherum.groups.transform`."""
    return reducing.transform(values, groups, *arguments, **more)
