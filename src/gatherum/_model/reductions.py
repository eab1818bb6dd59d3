"""The table of reductions, with one row for each reduction.

The core defines the result of a reduction, its dtypes, its accumulator type, and whether the order
of updates matters (``row_of`` in src/core/model/types.hpp); `dtypes` reads them from the core. This
table adds the properties that only Python needs. It must have a row for each reduction of the core;
otherwise importing this module raises ImportError. Derivatives are in `derivatives.FACTORS`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from gatherum._core import Neutral, Reduction, accumulator_neutral

# For type checkers; a test compares them with the table.
ReductionName: TypeAlias = Literal["none", "add", "mul", "max", "min", "mean", "fsum", "fmean"]
FoldName: TypeAlias = Literal["add", "mul", "max", "min", "mean", "fsum", "fmean"]

_NEUTRAL_NUMBERS = {Neutral.zero: 0, Neutral.one: 1}


class ReductionRow(NamedTuple):
    """The properties of a reduction that only Python needs. No field has a default.

    Attributes
    ----------
    name : str
        The core's name for the reduction.
    aliases : tuple of str
        Names in other packages. An error for one of these names suggests `name`.
    torch_scatter : tuple of str
        Names in torch_scatter and in PyG's `scatter`.
    onnx : int or None
        The first opset whose ScatterElements and ScatterND support it, None if no opset does.
    picture : tuple of str
        The text before, between and after the terms of a fold in pictures, with ``{n}`` for the
        number of terms.
    is_linear : bool
        Whether a scatter is linear in data and updates together. Its derivative then needs no
        values.
    cuda_atomic : bool
        Whether fold_atomic.cu folds integers with it.
    """

    name: ReductionName
    aliases: tuple[str, ...]
    torch_scatter: tuple[str, ...]
    onnx: int | None
    picture: tuple[str, str, str]
    is_linear: bool
    cuda_atomic: bool

    @property
    def neutral_number(self) -> int | None:
        """The neutral element of the accumulators, if it is the same number for every dtype.

        The neutral element of float sums is -0; `dtypes.neutral_item` returns its bits.
        """
        return _NEUTRAL_NUMBERS.get(accumulator_neutral(Reduction[self.name]))

    @property
    def empty(self) -> int:
        """The result without updates and without an old value: 0, or 1 for a product."""
        return self.neutral_number or 0

    @property
    def needs_values(self) -> bool:
        """Whether the derivative depends on the values of data and updates."""
        return not self.is_linear


_ROWS = (
    ReductionRow(
        name="none",
        aliases=("replace", "update"),
        torch_scatter=("any",),
        onnx=9,
        picture=("", "", ""),
        is_linear=True,
        cuda_atomic=False,
    ),
    ReductionRow(
        name="add",
        aliases=("sum",),
        torch_scatter=("sum", "add"),
        onnx=16,
        picture=("", "+", ""),
        is_linear=True,
        cuda_atomic=True,
    ),
    ReductionRow(
        name="mul",
        aliases=("prod", "multiply"),
        torch_scatter=("mul",),
        onnx=16,
        picture=("", "\N{MULTIPLICATION SIGN}", ""),
        is_linear=False,
        cuda_atomic=False,
    ),
    ReductionRow(
        name="max",
        aliases=("amax", "maximum"),
        torch_scatter=("max", "amax"),
        onnx=18,
        picture=("max(", ",", ")"),
        is_linear=False,
        cuda_atomic=True,
    ),
    ReductionRow(
        name="min",
        aliases=("amin", "minimum"),
        torch_scatter=("min", "amin"),
        onnx=18,
        picture=("min(", ",", ")"),
        is_linear=False,
        cuda_atomic=True,
    ),
    ReductionRow(
        name="mean",
        aliases=(),
        torch_scatter=("mean",),
        onnx=None,
        picture=("(", "+", ")/{n}"),
        is_linear=True,
        cuda_atomic=False,
    ),
    ReductionRow(
        name="fsum",
        aliases=(),
        torch_scatter=(),
        onnx=None,
        picture=("", "+", ""),
        is_linear=True,
        cuda_atomic=False,
    ),
    ReductionRow(
        name="fmean",
        aliases=(),
        torch_scatter=(),
        onnx=None,
        picture=("(", "+", ")/{n}"),
        is_linear=True,
        cuda_atomic=False,
    ),
)


def _in_order_of_core(rows: tuple[ReductionRow, ...]) -> dict[str, ReductionRow]:
    """Return the rows by name, or raise ImportError unless they are the core's reductions."""
    table: dict[str, ReductionRow] = {row.name: row for row in rows}
    core_names = [reduction.name for reduction in Reduction]
    if missing := [name for name in core_names if name not in table]:
        raise ImportError(
            f"gatherum._model.reductions has no row for {', '.join(missing)} of the core"
        )
    if unknown := [name for name in table if name not in core_names]:
        raise ImportError(
            f"the core has no reduction {', '.join(unknown)}, which has a row in "
            "gatherum._model.reductions: rebuild it"
        )
    ordered = (table[name] for name in core_names)
    return {row.name: row for row in ordered}  # the names of this file, which are interned


ROWS = _in_order_of_core(_ROWS)
REDUCTIONS = tuple(ROWS)
FOLDS = REDUCTIONS[1:]
ALIASES = {alias: row.name for row in ROWS.values() for alias in row.aliases}


def known_to_onnx(opset: int) -> tuple[str, ...]:
    """Return the reductions that ONNX's scatters support at an opset."""
    rows = ROWS.values()
    return tuple(row.name for row in rows if row.onnx is not None and row.onnx <= opset)
