"""The table with which ``torch.onnx.export`` translates the ops to ONNX.

``torch.onnx.export`` accepts the functions of `onnx_translations`. The export raises an error for
calls that ONNX cannot express.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from gatherum._model.operators import OPERATORS, Operator
from gatherum.torch import errors as torch_errors
from gatherum.torch.library.ops import overload

from . import onnx_signatures


def onnx_translations() -> dict[Any, Callable[..., Any]]:
    """Return the ``custom_translation_table`` for ``torch.onnx.export``.

    Needs onnxscript, as the exporter does, and opset 18 or later.

    Returns
    -------
    dict
        A function for each functional op of ``torch.ops.gatherum``, which writes the op's nodes.

    Raises
    ------
    ImportError
        If onnxscript is not installed.
    """
    try:
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ImportError("onnx_translations needs onnxscript: pip install onnxscript") from error
    return {
        overload(op): getattr(onnx_signatures, op, None) or _refused(row)
        for op, row in OPERATORS.items()
    }


def _refused(operator: Operator) -> Callable[..., Any]:
    """Return the translation of an operator that ONNX has no counterpart for."""
    like = onnx_signatures.scatter_slices if operator.scatters else onnx_signatures.gather

    @wraps(like)  # the exporter reads the signature
    def refuse(*_: Any, **__: Any) -> Any:
        instead = "write the call with an operator that it has"
        raise torch_errors.no_onnx(operator.name, "operator", instead)

    return refuse
