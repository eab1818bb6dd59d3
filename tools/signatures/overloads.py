"""The overloads of functions on arrays: NumPy arrays, other libraries' arrays, array_likes."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from model import (
    FUNCTIONS,
    PACKAGE,
    Function,
    Parameter,
    read_functions,
    written_head,
    written_module,
)


class Module(NamedTuple):
    """A generated module with the overloads of functions."""

    folder: Path
    sources: tuple[str, ...]
    package: str  # whose functions they are, for the docstrings
    # The types of operands that are converted to arrays, if they are more than an array_like.
    types: Mapping[str, str]
    keeps_dtype: bool  # whether results have the dtype of the first operand
    docstring: str
    imports: str


# The functions whose results do not have the dtype of `data`.
OF_OTHER_DTYPES = ("gather_quantized",)
# The parameter that is one name or several; several names return a dict of arrays.
ONE_OR_SEVERAL = Parameter("func", "ReduceName | ReduceNames", '"sum"')

MODULES = (
    Module(
        folder=FUNCTIONS,
        sources=("gathers.py", "scatters.py", "aggregation.py", "quantized/gather.py"),
        package="gatherum",
        types={
            "gather_indices": "ArrayLike | SparseMatrix",
            "scatter_indices": "ArrayLike | None",
            "dtype": "ResultName | DTypeLike",
        },
        keeps_dtype=True,
        docstring="""Overloads of the functions on arrays, for type checkers.

The result has the dtype of `data`, or the type of another library's array.
""",
        imports="""\
from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from gatherum._model.call_types import FoldName, Foreign, ReductionName, SparseMatrix
    from gatherum._model.modes import ModeName

    from .quantized.formats import ResultName

Item = TypeVar("Item", bound=np.generic)
""",
    ),
    Module(
        folder=PACKAGE / "groups",
        sources=("reducing.py", "transforming.py"),
        package="gatherum.groups",
        types={"dtype": "DTypeLike | None"},
        keeps_dtype=False,
        docstring="""Overloads of the functions over groups, for type checkers.

The result is an array, or has the type of another library's array. For several functions, it is a
dict of such arrays.
""",
        imports="""\
from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from gatherum._model.call_types import Foreign
    from gatherum._model.modes import ModeName

    from .cumulative import RankMethod
    from .function_names import ReduceName, ReduceNames, TransformName
    from .order_statistics import QuantileMethod
""",
    ),
)


def files() -> dict[Path, str]:
    """Return the text of the modules."""
    return {module.folder / "overloads.py": _written(module) for module in MODULES}


def _written(module: Module) -> str:
    functions = [each for name in module.sources for each in read_functions(module.folder / name)]
    declared = (each for each in functions if f"typed_as(overloads.{each.name})" in each.decorators)
    definitions = (_declared(function, module) for function in declared)
    return written_module(module.docstring, module.imports, *definitions)


def _declared(function: Function, module: Module) -> str:
    """Return the overloads of a function, and the implementation that type checkers require."""
    keeps_dtype = module.keeps_dtype and function.name not in OF_OTHER_DTYPES
    first_types = f"NDArray[{'Item' if keeps_dtype else 'Any'}]", "Foreign", "ArrayLike"
    text = "\n\n".join(
        overload for each in first_types for overload in _overloads(function, module, each)
    )
    return (
        f"{text}def {function.name}(*operands: Any, **attributes: Any) -> Any:\n"
        f'    """Declare the types of `{module.package}.{function.name}`."""\n'
        "    raise NotImplementedError"
    )


def _overloads(function: Function, module: Module, first_type: str) -> Iterator[str]:
    """Return the overloads for one type of the first operand. Others are Any if it is Foreign."""
    first = function.parameters[0].name
    result = "NDArray[Any]" if first_type == "ArrayLike" else first_type
    annotations = {first: first_type, "out": f"{result} | None"}
    for one in function.parameters:
        if one.annotation == "Any" and one.name != first and first_type != "Foreign":
            optional = " | None" if one.default == "None" else ""
            annotations[one.name] = module.types.get(one.name, "ArrayLike" + optional)
    parameters = function.typed(annotations)
    if ONE_OR_SEVERAL not in parameters:
        yield _overload(function.name, parameters, result)
        return
    position = parameters.index(ONE_OR_SEVERAL)
    one_name = ONE_OR_SEVERAL._replace(annotation="ReduceName")
    several = ONE_OR_SEVERAL._replace(annotation="ReduceNames", default=None, keyword_only=True)
    before, after = parameters[:position], parameters[position + 1 :]
    yield _overload(function.name, (*before, one_name, *after), result)
    keywords = (each._replace(keyword_only=True) for each in after)
    yield _overload(function.name, (*before, several, *keywords), f"dict[str, {result}]")


def _overload(name: str, parameters: tuple[Parameter, ...], result: str) -> str:
    return f"@overload\n{written_head(name, parameters, result)} ...\n"
