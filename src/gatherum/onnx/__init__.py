"""gatherum's Gather and Scatter operators for ONNX's tools.

`reference_ops` returns the operators for ONNX's reference evaluator, `Evaluator` is that evaluator
with these operators, `backend` implements ONNX's backend interface, and `check_model` reports which
nodes of a model a DirectML feature level supports.
"""

# This package imports only directml, _inspection and the packages below them. Start with
# operators.py.

try:
    import onnx as _onnx  # noqa: F401
except ImportError as error:
    raise ImportError("gatherum.onnx needs onnx: pip install onnx") from error

from gatherum._exports.help_signatures import plain_help

from . import backend
from .check import check_model
from .evaluator import Evaluator
from .reference_ops import reference_ops
from .report import NodeReport, report_lines, report_table, reports_to_json

__all__ = [
    "Evaluator",
    "NodeReport",
    "backend",
    "check_model",
    "reference_ops",
    "report_lines",
    "report_table",
    "reports_to_json",
]

plain_help(globals())


def __dir__() -> list[str]:
    return list(__all__)
