"""The overloads of functions on arrays: NumPy arrays, other libraries' arrays, array_likes."""

from pathlib import Path

from model import FUNCTIONS, PACKAGE, Function, read_functions, written_head, written_module

TARGET = PACKAGE / "_functions" / "overloads.py"
SOURCES = ("gathers.py", "scatters.py", "aggregation.py", "quantized/gather.py")
# The types of operands that are converted to arrays, if they are more than an array_like.
TYPES = {
    "gather_indices": "ArrayLike | SparseMatrix",
    "scatter_indices": "ArrayLike | None",
    "dtype": "ResultName | DTypeLike",
}
# The functions whose results do not have the dtype of `data`.
OF_OTHER_DTYPES = ("gather_quantized",)

IMPORTS = """\
from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from gatherum._model.call_types import FoldName, Foreign, ReductionName, SparseMatrix
    from gatherum._model.modes import ModeName

    from .quantized.formats import ResultName

Item = TypeVar("Item", bound=np.generic)
"""
DOCSTRING = """Overloads of the functions on arrays, for type checkers.

The result has the dtype of `data`, or the type of another library's array.
"""


def files() -> dict[Path, str]:
    """Return the text of the module."""
    functions = [each for name in SOURCES for each in read_functions(FUNCTIONS / name)]
    declared = (each for each in functions if f"typed_as(overloads.{each.name})" in each.decorators)
    return {TARGET: written_module(DOCSTRING, IMPORTS, *map(_declared, declared))}


def _declared(function: Function) -> str:
    """Return the overloads of a function, and the implementation that type checkers require."""
    of_item = "Any" if function.name in OF_OTHER_DTYPES else "Item"
    kinds = {f"NDArray[{of_item}]": True, "Foreign": False, "ArrayLike": True}
    text = "\n\n".join(_overload(function, data, typed) for data, typed in kinds.items())
    return (
        f"{text}def {function.name}(*operands: Any, **attributes: Any) -> Any:\n"
        f'    """Declare the types of `gatherum.{function.name}`."""\n'
        "    raise NotImplementedError"
    )


def _overload(function: Function, data: str, typed: bool) -> str:
    """Return an overload for one type of data. If not `typed`, the other operands are Any."""
    result = "NDArray[Any]" if data == "ArrayLike" else data
    annotations = {"data": data, "out": f"{result} | None"}
    for one in function.parameters:
        if one.annotation == "Any" and one.name != "data" and typed:
            optional = " | None" if one.default == "None" else ""
            annotations[one.name] = TYPES.get(one.name, "ArrayLike") + optional
    head = written_head(function.name, function.typed(annotations), result)
    return f"@overload\n{head} ...\n"
