"""Connect the functions of the operators with the core, after checking that none is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gatherum._frameworks.torch_compile import follow_tensors
from gatherum._system.native import accelerate


def connect(operators: Iterable[str], functions: Mapping[str, Any], module: str) -> None:
    """Let the core run the calls of the functions of these operators.

    Raises
    ------
    ImportError
        If the module has no function for an operator of the table.
    """
    for name in operators:
        if name not in functions:
            raise ImportError(
                f"{module} has no function for the operator {name} of gatherum._model.operators"
            )
        accelerate(functions[name])
        follow_tensors(functions[name])
