"""Lower an operator desc to the equivalent call of the functional API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gatherum._model.operators import OPERATORS, Operator

from .descs import (
    GatherElementsOperatorDesc,
    GatherOperatorDesc,
    NdOperatorDesc,
    OperatorDesc,
    ScatterOperatorDesc,
    nd_counts,
    nd_result,
)
from .types import FeatureLevel

_ROWS = {name: operator for operator in OPERATORS.values() for name in operator.directml}


@dataclass(frozen=True)
class Lowered:
    """An operator of the functional API, its attributes, and the ranks of its operands.

    ``ranks`` maps DirectML's name of each tensor to the number of trailing dimensions that are
    kept. The leading dimensions have size 1.
    """

    operator: Operator
    attributes: Mapping[str, Any]
    ranks: Mapping[str, int]


def lower_desc(desc: OperatorDesc, level: FeatureLevel) -> Lowered:
    """Lower an accepted desc.

    Reads at invalid indices are clamped, and writes are dropped. Negative indices count from the
    end for signed index types at level 3_0 and above.
    """
    row, dimension_count, axis = _ROWS[desc.operator], desc.input_tensor.dimension_count, 0
    ranks = dict.fromkeys(desc.tensors, dimension_count)
    if isinstance(desc, GatherOperatorDesc):
        cropped = max(desc.index_dimensions - 1, 0)
        axis = desc.axis - cropped
        ranks |= {"InputTensor": dimension_count - cropped, "IndicesTensor": desc.index_dimensions}
        # Without index dimensions the result has no dimension for the output's leading 1.
        ranks["OutputTensor"] = dimension_count if desc.index_dimensions else dimension_count - 1
    elif isinstance(desc, (GatherElementsOperatorDesc, ScatterOperatorDesc)):
        axis = desc.axis
    elif isinstance(desc, NdOperatorDesc):
        input_count, indices_count, axis = nd_counts(desc)
        ranks |= {
            "InputTensor": input_count,
            "IndicesTensor": indices_count,
            "OutputTensor": input_count,
        }
        ranks[nd_result(desc)] = (
            indices_count - 1 + input_count - axis - desc.indices_tensor.sizes[-1]
        )
    attributes = {
        row.attribute: axis,
        "mode": "drop" if row.scatters else "clip",
        "negative": desc.indices_tensor.data_type.signed and level >= FeatureLevel.LEVEL_3_0,
    }
    return Lowered(row, attributes, ranks)
