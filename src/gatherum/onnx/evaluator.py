"""`Evaluator` is ONNX's reference evaluator with gatherum's operators."""

from __future__ import annotations

from typing import Any, ClassVar

from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from gatherum._arguments.plain_values import as_choice
from gatherum._model.modes import MODES, ModeName

from .reference_ops import reference_ops


class Evaluator(ReferenceEvaluator):
    """``ReferenceEvaluator`` with gatherum's gathers and scatters, everywhere in a model.

    ONNX's evaluator does not pass `new_ops` on to local functions. It evaluates local functions
    with an instance of the same class, so this class applies to them as well.

    Parameters
    ----------
    proto : ModelProto, GraphProto, FunctionProto, NodeProto, str or bytes
        As in ``ReferenceEvaluator``.
    new_ops : list of OpRun classes, optional
        Additional operators, which take precedence.
    mode : {"raise", "clip", "wrap", "fill", "drop"}, optional
        How the six operators treat out-of-bounds indices, as in gatherum's functions. The default,
        ``"raise"``, follows ONNX; ``"clip"`` follows WebNN.
    **options
        As in ``ReferenceEvaluator``: ``opsets``, ``functions``, ``verbose``.

    Examples
    --------
    >>> import numpy as np, onnx.parser
    >>> model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["": 18]>
    ...     pick (int32[3] x, int64[2] i) => (int32[2] y) { y = Gather(x, i) }''')
    >>> x, i = np.array([7, 8, 9], np.int32), np.array([2, 0])
    >>> Evaluator(model).run(None, {"x": x, "i": i})[0].tolist()
    [9, 7]
    >>> Evaluator(model, mode="clip").run(None, {"x": x, "i": i + 2})[0].tolist()
    [9, 9]
    """

    mode: ClassVar[str] = "raise"

    def __init__(
        self,
        proto: Any,
        *,
        new_ops: list[type[OpRun]] | None = None,
        mode: ModeName | None = None,
        **options: Any,
    ) -> None:
        if mode is not None:
            # ONNX evaluates functions and bodies with the class of this evaluator.
            names = {"mode": as_choice("Evaluator", "mode", mode, MODES), "__doc__": self.__doc__}
            self.__class__ = type(Evaluator.__name__, (type(self),), names)
        super().__init__(proto, new_ops=[*(new_ops or []), *reference_ops()], **options)
