"""`Evaluator` is ONNX's reference evaluator with gatherum's six operators."""

from __future__ import annotations

from typing import Any

from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from .reference_ops import reference_ops


class Evaluator(ReferenceEvaluator):
    """``ReferenceEvaluator`` whose gathers and scatters are gatherum's, everywhere in a model.

    ONNX's evaluator does not hand `new_ops` on to local functions. It makes their evaluators of
    its own class, so this class reaches them.

    Parameters
    ----------
    proto : ModelProto, GraphProto, FunctionProto, NodeProto, str or bytes
        As for ``ReferenceEvaluator``.
    new_ops : list of OpRun classes, optional
        More operators; they come before these.
    **options
        As for ``ReferenceEvaluator``: ``opsets``, ``functions``, ``verbose``.

    Examples
    --------
    >>> import numpy as np, onnx.parser
    >>> model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["": 18]>
    ...     pick (int32[3] x, int64[2] i) => (int32[2] y) { y = Gather(x, i) }''')
    >>> x, i = np.array([7, 8, 9], np.int32), np.array([2, 0])
    >>> Evaluator(model).run(None, {"x": x, "i": i})[0].tolist()
    [9, 7]
    """

    def __init__(
        self, proto: Any, *, new_ops: list[type[OpRun]] | None = None, **options: Any
    ) -> None:
        super().__init__(proto, new_ops=[*(new_ops or []), *reference_ops()], **options)
