"""`Evaluator` is ONNX's reference evaluator with gatherum's operators."""

from __future__ import annotations

from typing import Any, ClassVar

from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from gatherum._arguments.plain_values import as_choice
from gatherum._model.modes import MODES, ModeName

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
    mode : {"raise", "clip", "wrap", "fill", "drop"}, optional
        How the six operators treat indices that are out of bounds, as for gatherum's functions.
        ONNX's texts call them errors, ``"raise"``, the default; WebNN clamps them, ``"clip"``.
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
            # ONNX makes the evaluators of functions and bodies of the class of this one.
            found = {"mode": as_choice("Evaluator", "mode", mode, MODES), "__doc__": self.__doc__}
            self.__class__ = type(Evaluator.__name__, (type(self),), found)
        super().__init__(proto, new_ops=[*(new_ops or []), *reference_ops()], **options)
