"""The types of a call's attributes, such as `ModeName`, for type checkers."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

from .reductions import FoldName, ReductionName

__all__ = [
    "FoldName", "IndexAttributes", "ModeName", "OperatorName", "PlanAttributes",
    "PrepareAttributes", "ReductionName",
]  # fmt: skip

ModeName: TypeAlias = Literal["raise", "clip", "wrap", "fill", "drop"]
OperatorName: TypeAlias = Literal[
    "gather",
    "gather_elements",
    "gather_nd",
    "scatter_slices",
    "scatter_elements",
    "scatter_nd",
    "gather-elements",
    "gather-nd",
    "scatter-slices",
    "scatter-elements",
    "scatter-nd",
]


class IndexAttributes(TypedDict, total=False):
    """What `index_report` takes beside the operands."""

    axis: int
    batch_dims: int
    mode: ModeName
    negative: bool
    fill_value: object


class PrepareAttributes(TypedDict, total=False):
    """What `prepare` takes beside the operands."""

    axis: int
    batch_dims: int
    mode: ModeName
    negative: bool
    reduction: ReductionName
    include_self: bool


class PlanAttributes(IndexAttributes, total=False):
    """What `plan` and `explain` take beside the operands."""

    reduction: ReductionName
    include_self: bool
    out: object
