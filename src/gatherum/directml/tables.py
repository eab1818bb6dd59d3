"""Render the documentation page on feature levels from the support table.

``python -m gatherum.directml.tables > docs/directml-levels.md`` updates it; a test compares the
page with this rendering.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from .levels import OPERATORS, SUPPORT, SupportRow
from .types import FeatureLevel

_OPENING = """\
# What each feature level accepts

<!-- Rendered by `python -m gatherum.directml.tables` from src/gatherum/directml/levels.py. -->

The tables below are the data that `gatherum.directml.check` reads. A feature level includes
every level before it; where a table and a published page differ, the
[errata](directml-errata.md) say so and why. All tensors of an operator have one
DimensionCount, and all but the indices one DataType.
"""


def render_levels() -> str:
    """Return the page as Markdown.

    Examples
    --------
    >>> print(render_levels().splitlines()[0])
    # What each feature level accepts
    """
    parts = [_OPENING, _overview()]
    parts += [_operator_section(name) for name in OPERATORS]
    return "\n".join(parts)


def _overview() -> str:
    rows = [
        [f"[{name}](#{name.lower()})", str(operator.introduced)]
        for name, operator in OPERATORS.items()
    ]
    return _table(("operator", "first feature level"), rows)


def _operator_section(name: str) -> str:
    operator = OPERATORS[name]
    source = f"Begins at {operator.introduced} ({operator.introduction})."
    if operator.claim:
        source += f" {operator.claim}."
    rows = []
    for levels, rows_of_era in _eras(name):
        span = str(levels[0]) if len(levels) == 1 else f"{levels[0]} to {levels[-1]}"
        alike: dict[tuple[str, str], list[str]] = {}
        for row in rows_of_era:
            counts, types = row.dimension_counts, row.type_names
            count_range = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
            alike.setdefault((count_range, types), []).append(row.operand)
        rows += [[span, ", ".join(tensors), *columns] for columns, tensors in alike.items()]
    head = ("feature levels", "tensors", "DimensionCount", "DataType")
    return f"## {name}\n\n{source}\n\n{_table(head, rows)}"


def _eras(operator: str) -> Iterator[tuple[list[FeatureLevel], list[SupportRow]]]:
    """Yield runs of levels with the same rows for an operator."""
    operands = OPERATORS[operator].operands
    levels = [level for level in FeatureLevel if level >= OPERATORS[operator].introduced]

    def content(level: FeatureLevel) -> list[tuple[object, ...]]:
        rows = (SUPPORT[level, operator, operand] for operand in operands)
        return [(row.data_types, row.dimension_counts) for row in rows]

    for _, alike in groupby(levels, key=content):
        run = list(alike)
        yield run, [SUPPORT[run[0], operator, operand] for operand in operands]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    print(render_levels(), end="")
