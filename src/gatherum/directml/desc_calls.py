"""An operator desc is lowered to the call of the functional API that it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..operators import OPERATORS
from .descs import (
    GatherElementsOperatorDesc,
    GatherNd1OperatorDesc,
    GatherNdOperatorDesc,
    GatherOperatorDesc,
    OperatorDesc,
    ScatterNdOperatorDesc,
    ScatterOperatorDesc,
)
from .types import FeatureLevel


@dataclass(frozen=True)
class Lowered:
    """An operator of the functional API, its attributes, and the dimensions that it takes.

    ``ranks`` has, by DirectML's names, the number of trailing dimensions that each tensor
    keeps; those to the left of them are sizes of 1.
    """

    op: str
    attributes: Mapping[str, Any]
    ranks: Mapping[str, int]


def lower_desc(desc: OperatorDesc, level: FeatureLevel) -> Lowered:
    """Return what an accepted desc stands for.

    Reads are clamped and writes dropped where an index is invalid, and negative indices count
    from the end with signed index types from level 3_0 on.
    """
    if isinstance(desc, GatherOperatorDesc):
        op, attributes, ranks = _lower_gather(desc)
    elif isinstance(desc, GatherElementsOperatorDesc):
        op, attributes, ranks = "gather_elements", {"axis": desc.axis}, {}
    elif isinstance(desc, GatherNdOperatorDesc):
        op, attributes, ranks = _lower_gather_nd(desc, 0)
    elif isinstance(desc, GatherNd1OperatorDesc):
        op, attributes, ranks = _lower_gather_nd(desc, desc.batch_dimension_count)
    elif isinstance(desc, ScatterOperatorDesc):
        op, attributes, ranks = "scatter_elements", {"axis": desc.axis}, {}
    elif isinstance(desc, ScatterNdOperatorDesc):
        op, attributes, ranks = _lower_scatter_nd(desc)
    else:
        raise TypeError(f"`desc` must be an operator desc, got {type(desc).__name__}")
    signed = desc.indices_tensor.data_type.signed
    attributes["mode"] = "drop" if OPERATORS[op].scatters else "clip"
    attributes["negative"] = signed and level >= FeatureLevel.LEVEL_3_0
    d = desc.input_tensor.dimension_count
    return Lowered(op, attributes, dict.fromkeys(desc.tensors, d) | ranks)


def _lower_gather(desc: GatherOperatorDesc) -> tuple[str, dict[str, Any], dict[str, int]]:
    d = desc.input_tensor.dimension_count
    cropped = max(desc.index_dimensions - 1, 0)
    # Without index dimensions the result has one dimension less: its leading 1 is not written.
    ranks = {
        "InputTensor": d - cropped,
        "IndicesTensor": desc.index_dimensions,
        "OutputTensor": d if desc.index_dimensions else d - 1,
    }
    return "gather", {"axis": desc.axis - cropped}, ranks


def _lower_gather_nd(
    desc: GatherNdOperatorDesc | GatherNd1OperatorDesc, batch_dims: int
) -> tuple[str, dict[str, Any], dict[str, int]]:
    r, q = desc.input_dimension_count, desc.indices_dimension_count
    k = desc.indices_tensor.sizes[-1]
    ranks = {
        "InputTensor": r,
        "IndicesTensor": q,
        "OutputTensor": q - 1 + r - batch_dims - k,
    }
    return "gather_nd", {"batch_dims": batch_dims}, ranks


def _lower_scatter_nd(
    desc: ScatterNdOperatorDesc,
) -> tuple[str, dict[str, Any], dict[str, int]]:
    r, q = desc.input_dimension_count, desc.indices_dimension_count
    k = desc.indices_tensor.sizes[-1]
    ranks = {
        "InputTensor": r,
        "IndicesTensor": q,
        "UpdatesTensor": q - 1 + r - k,
        "OutputTensor": r,
    }
    return "scatter_nd", {"batch_dims": 0}, ranks
