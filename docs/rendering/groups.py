"""Render the tables of functions over groups from the tables in the package."""

from collections.abc import Callable

import numpy as np

from gatherum.groups.functions import FUNCTIONS, TRANSFORMS
from gatherum.groups.rows import FunctionRow

from .tables import table


def render() -> str:
    """Return a table of the functions of `reduce`."""
    head = ("`func`", "dtypes", "result", "empty group", "ties and NaN", "composed of")
    rows = [
        [
            f"`{row.name}`",
            _dtypes(row.accepts),
            _result(row),
            _empty(row),
            row.ties,
            row.composes,
        ]
        for row in FUNCTIONS.values()
        if not row.skips_nan
    ]
    return table(head, rows)


def render_transforms() -> str:
    """Return a table of the functions of `transform`."""
    rows = [[f"`{r.name}`", _dtypes(r.accepts), r.composes] for r in TRANSFORMS.values()]
    return table(("`func`", "dtypes", "composed of"), rows)


def render_memory() -> str:
    """Return a table of the memory that `reduce_file` needs, by function."""
    rows = [row for row in FUNCTIONS.values() if not row.skips_nan]
    scattered = [row.name for row in rows if row.is_one_scatter]
    folded = [row.name for row in rows if row.reduction and not row.is_one_scatter]
    whole = [row.name for row in rows if not row.reduction]
    return table(
        ("functions", "memory"),
        [
            [
                ", ".join(scattered),
                "accumulators in memory while they fit; otherwise, and along axes other than 0, "
                "scratch files",
            ],
            [
                f"{', '.join(folded)}, and the `nan` forms of these functions",
                "accumulators, which must fit in a third of `memory`",
            ],
            [
                f"{', '.join(whole)}, their `nan` forms, and weights",
                "all values: 1.5 to 8 times the size of the operands must fit in `memory`",
            ],
        ],
    )


def _dtypes(accepts: Callable[[np.dtype], bool]) -> str:
    if accepts(np.dtype("U1")):
        return "all"
    kinds = {"integers": "i4", "floats": "f4", "complex": "c8", "bool": "?", "dates": "M8[s]"}
    return ", ".join(name for name, code in kinds.items() if accepts(np.dtype(code)))


def _result(row: FunctionRow) -> str:
    kinds = [str(row.result(np.dtype(code))) for code in ("i4", "f4")]
    if kinds == ["int32", "float32"]:
        return "dtype of the values"
    return kinds[0] if kinds[0] == kinds[1] else "real dtype of floats; float64 for integers"


def _empty(row: FunctionRow) -> str:
    if row.empty is not None:
        return str(row.result(np.dtype("i4")).type(row.empty))
    accepted = [dtype for dtype in map(np.dtype, ("i4", "f4", "M8[s]")) if row.accepts(dtype)]
    kinds = "".join(row.result(dtype).kind for dtype in accepted)
    if "f" not in kinds:
        return "an error"
    if "M" in kinds:
        return "NaN or NaT; an error if the result dtype has neither"
    return "NaN; an error if the result dtype has none" if "i" in kinds else "NaN"
