"""The table of reductions: one row for each.

The core defines what a reduction computes, its dtypes, the type it accumulates in, and whether the
order of updates counts (``row_of`` in src/core/model/types.hpp); `dtypes` reads them from there.
This table adds the facts that only Python needs. It must have a row for each reduction of the core,
or the first use of the package fails. Derivatives are in `derivatives.FACTORS`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from gatherum._core import Reduction

# For type checkers; a test compares them with the table.
ReductionName: TypeAlias = Literal["none", "add", "mul", "max", "min", "mean", "fsum", "fmean"]
FoldName: TypeAlias = Literal["add", "mul", "max", "min", "mean", "fsum", "fmean"]


class ReductionRow(NamedTuple):
    """What Python knows of one reduction. No field has a default: each row says all.

    Attributes
    ----------
    name : str
        Its name, as the core has it.
    aliases : tuple of str
        What other packages call it; errors then advise `name`.
    torch_scatter : tuple of str
        Its words in torch_scatter and in PyG's `scatter`.
    onnx : int or None
        The first opset whose ScatterElements and ScatterND have it, None without one.
    neutral : int or None
        The number that changes nothing it is folded with, for numbers of every dtype.
    picture : tuple of str
        How pictures write a fold: what stands before, between and behind its terms, with ``{n}``
        for their number.
    linear : bool
        Whether a scatter is linear in data and updates together. Its derivative then needs no
        values.
    cuda_atomic : bool
        Whether fold_atomic.cu folds integers with it.
    """

    name: ReductionName
    aliases: tuple[str, ...]
    torch_scatter: tuple[str, ...]
    onnx: int | None
    neutral: int | None
    picture: tuple[str, str, str]
    linear: bool
    cuda_atomic: bool

    @property
    def empty(self) -> int:
        """What a place that no update goes to holds where there is no old value: 0, or 1."""
        return self.neutral or 0

    @property
    def needs_values(self) -> bool:
        """Whether its derivative depends on the values of data and updates."""
        return not self.linear


_ROWS = (
    ReductionRow(
        name="none",
        aliases=("replace", "update"),
        torch_scatter=("any",),
        onnx=9,
        neutral=None,
        picture=("", "", ""),
        linear=True,
        cuda_atomic=False,
    ),
    ReductionRow(
        name="add",
        aliases=("sum",),
        torch_scatter=("sum", "add"),
        onnx=16,
        neutral=0,
        picture=("", "+", ""),
        linear=True,
        cuda_atomic=True,
    ),
    ReductionRow(
        name="mul",
        aliases=("prod", "multiply"),
        torch_scatter=("mul",),
        onnx=16,
        neutral=1,
        picture=("", "\N{MULTIPLICATION SIGN}", ""),
        linear=False,
        cuda_atomic=False,
    ),
    ReductionRow(
        name="max",
        aliases=("amax", "maximum"),
        torch_scatter=("max", "amax"),
        onnx=18,
        neutral=None,
        picture=("max(", ",", ")"),
        linear=False,
        cuda_atomic=True,
    ),
    ReductionRow(
        name="min",
        aliases=("amin", "minimum"),
        torch_scatter=("min", "amin"),
        onnx=18,
        neutral=None,
        picture=("min(", ",", ")"),
        linear=False,
        cuda_atomic=True,
    ),
    ReductionRow(
        name="mean",
        aliases=(),
        torch_scatter=("mean",),
        onnx=None,
        neutral=None,
        picture=("(", "+", ")/{n}"),
        linear=True,
        cuda_atomic=False,
    ),
    ReductionRow(
        name="fsum",
        aliases=(),
        torch_scatter=(),
        onnx=None,
        neutral=0,
        picture=("", "+", ""),
        linear=True,
        cuda_atomic=False,
    ),
    ReductionRow(
        name="fmean",
        aliases=(),
        torch_scatter=(),
        onnx=None,
        neutral=None,
        picture=("(", "+", ")/{n}"),
        linear=True,
        cuda_atomic=False,
    ),
)


def _in_order_of_core(rows: tuple[ReductionRow, ...]) -> dict[str, ReductionRow]:
    """Return the rows by name, or raise ImportError unless they are the core's reductions."""
    table: dict[str, ReductionRow] = {row.name: row for row in rows}
    known = [reduction.name for reduction in Reduction]
    if missing := [name for name in known if name not in table]:
        raise ImportError(
            f"gatherum._model.reductions has no row for {', '.join(missing)} of the core"
        )
    if unknown := [name for name in table if name not in known]:
        raise ImportError(
            f"the core has no reduction {', '.join(unknown)}, which has a row in "
            "gatherum._model.reductions: rebuild it"
        )
    ordered = (table[name] for name in known)
    return {row.name: row for row in ordered}  # names of this file, which are interned


ROWS = _in_order_of_core(_ROWS)
REDUCTIONS = tuple(ROWS)
FOLDS = REDUCTIONS[1:]
ALIASES = {alias: row.name for row in ROWS.values() for alias in row.aliases}


def known_to_onnx(opset: int) -> tuple[str, ...]:
    """Return the reductions that ONNX's scatters have at an opset."""
    rows = ROWS.values()
    return tuple(row.name for row in rows if row.onnx is not None and row.onnx <= opset)
