"""The operators for ONNX's reference evaluator, in all their opset versions."""

from __future__ import annotations

from typing import Any

import onnx

from gatherum._model.arrays import NumpyArray
from gatherum._model.operators import OPERATORS

from .contrib import GatherBlockQuantized
from .operators import FamilyOp, NodeOp
from .tensor_scatter import TensorScatter


class Gather(FamilyOp, opsets=(1, 11, 13)):
    """Slices of `data` along one axis."""

    op = "gather"


class GatherElements(FamilyOp, opsets=(11, 13)):
    """Elements of `data`, one for each index."""

    op = "gather_elements"


class _TupleOp(FamilyOp):
    """An operator whose indices are tuples along their last dimension."""

    def _require_shapes(self, operands: dict[str, NumpyArray], attributes: dict[str, Any]) -> None:
        data, indices = operands["data"], operands["indices"]
        for name in ("data", "indices"):
            if operands[name].ndim == 0:
                raise ValueError(f"`{name}` must have at least 1 dimension, got 0")
        batch_dims = attributes.get("batch_dims", 0)
        limit = min(data.ndim, indices.ndim)
        if not 0 <= batch_dims < limit:
            raise ValueError(f"`batch_dims` must be in [0, {limit}), got {batch_dims}")
        longest = data.ndim - batch_dims
        if not 1 <= indices.shape[-1] <= longest:
            raise ValueError(
                f"`indices` must have a last dimension of 1 to {longest}, got {indices.shape[-1]}"
            )


class GatherND(_TupleOp, opsets=(11, 12, 13)):
    """Slices of `data`, one for each index tuple."""

    op = "gather_nd"


class _ScatterAlongAxis(FamilyOp):
    """A copy of `data` with elements written along one axis."""

    op = "scatter_elements"

    def _require_shapes(self, operands: dict[str, NumpyArray], attributes: dict[str, Any]) -> None:
        self._require_updates(operands, operands["indices"].shape)


class Scatter(_ScatterAlongAxis, opsets=(9, 11)):
    """The operator that opset 11 renamed to ScatterElements."""


class ScatterElements(_ScatterAlongAxis, opsets=(11, 13, 16, 18)):
    """A copy of `data` with elements written along one axis."""


class ScatterND(_TupleOp, opsets=(11, 13, 16, 18)):
    """A copy of `data` with slices written, one for each index tuple."""

    op = "scatter_nd"

    def _require_shapes(self, operands: dict[str, NumpyArray], attributes: dict[str, Any]) -> None:
        super()._require_shapes(operands, attributes)
        data, indices = operands["data"].shape, operands["indices"].shape
        shape = OPERATORS["scatter_nd"].addressing.moved_shape(self.op, data, indices, 0)
        self._require_updates(operands, shape)


FAMILY: dict[str, type[FamilyOp]] = {
    operator.__name__: operator
    for operator in (Gather, GatherElements, GatherND, Scatter, ScatterElements, ScatterND)
}


def reference_ops() -> list[type[NodeOp]]:
    """Return the operators for ``ReferenceEvaluator(model, new_ops=reference_ops())``.

    Returns
    -------
    list of OpRun classes
        One class for each operator: Gather, GatherElements, GatherND, Scatter, ScatterElements,
        ScatterND and TensorScatter, which select the version of the model's opset; and
        GatherBlockQuantized of the domain com.microsoft. TensorScatter needs onnx 1.19 or later.

    Raises
    ------
    ValueError
        Raised by the evaluator's constructor if a node has attributes that its version lacks, or if
        an operator does not exist at the model's opset. Raised by its ``run`` if shapes do not
        match, or if a reduction is unknown.
    TypeError
        Raised by the evaluator's ``run`` if ONNX does not allow an input's type.
    IndexError
        Raised by the evaluator's ``run`` if an index is out of bounds.

    Notes
    -----
    The evaluator passes `new_ops` on to the bodies of If, Loop and Scan, but not to a model's
    local functions. `Evaluator` also applies to local functions.

    Examples
    --------
    >>> import numpy as np, onnx.parser
    >>> from onnx.reference import ReferenceEvaluator
    >>> model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["": 18]>
    ...     lookup (float[5,3] table, int64[2] ids) => (float[2,3] y) { y = Gather(table, ids) }''')
    >>> table = np.arange(15, dtype=np.float32).reshape(5, 3)
    >>> session = ReferenceEvaluator(model, new_ops=reference_ops())
    >>> session.run(None, {"table": table, "ids": np.array([4, -5])})[0].tolist()
    [[12.0, 13.0, 14.0], [0.0, 1.0, 2.0]]
    """
    optional_ops = [TensorScatter] if onnx.defs.has("TensorScatter") else []
    return [*FAMILY.values(), *optional_ops, GatherBlockQuantized]
