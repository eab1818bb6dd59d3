"""Fill the cells of a picture with text and marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, islice, product
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments.conversion import fill_item
from gatherum._model.arrays import NumpyArray
from gatherum._model.errors import Shape
from gatherum._model.modes import FILLING
from gatherum._model.reductions import ROWS
from gatherum._plans.plans import apply

from .model import Scene

LONGEST = 7  # characters of a value; longer values are replaced by letters
WIDEST = 9  # characters of a line in a cell


@dataclass(slots=True)
class Cell:
    """A cell: lines of text, a tooltip, a colour and a mark.

    Cells that share a position have the same colour. The mark is ``"filled"``, ``"dropped"``,
    ``"lost"`` or empty.
    """

    lines: list[str]
    tip: str = ""
    colour: int = -1
    mark: str = ""


class CallValues(NamedTuple):
    """The values of a call. Unknown values are None."""

    data: NumpyArray | None = None
    indices: NumpyArray | None = None
    updates: NumpyArray | None = None
    fill_value: object = 0


class Cells(NamedTuple):
    """The cells of all arrays in row-major order, and whether they show values.

    `data` contains the cells of the data, or of a scatter's result. `moved` contains the cells of a
    gather's result, or of a scatter's updates. `before` contains the cells of a scatter's data.
    """

    data: list[Cell]
    moved: list[Cell]
    before: list[Cell]
    has_values: bool


def fill_cells(scene: Scene, operands: CallValues) -> Cells:
    """Fill every cell with its value in the result of a call."""
    drawn = scene.drawn
    values = _drawn(scene, operands)
    texts = [value_texts(drawn) or [] for drawn in values]
    texts = texts or [letters(drawn.data, "a"), letters(drawn.moved, "A")]
    positions = list(product(*scene.shown))
    data = _cells("data", positions, texts[0])
    if scene.gathers:
        moved = _cells("result", np.ndindex(drawn.moved), [""] * prod(drawn.moved))
        _gather(scene, data, moved, operands.fill_value)
        return Cells(data, moved, [], bool(values))
    moved = _cells("updates", np.ndindex(drawn.moved), texts[1])
    result = _cells("result", positions, [""] * len(positions) if scene.is_refused else texts[0])
    _scatter(scene, result, moved, values)
    return Cells(result, moved, data, bool(values))


def _cells(name: str, positions: Iterable[Shape], texts: Iterable[str]) -> list[Cell]:
    pairs = zip(positions, texts, strict=True)
    return [Cell([text], f"{name}{list(position)}") for position, text in pairs]


def _drawn(scene: Scene, operands: CallValues) -> list[NDArray[Any]]:
    """Return the values to draw for the data and for the updates of a scatter.

    The list is empty if a value is unknown or too long.
    """
    data, updates = operands.data, operands.updates
    if data is None or scene.has_example_indices or (updates is None and not scene.gathers):
        return []
    # One by one: NumPy accepts at most 63 index lists in one call.
    arrays = [np.array([data[position] for position in product(*scene.shown)], data.dtype)]
    if updates is not None:
        stretched = np.broadcast_to(updates, scene.call_shapes.moved)
        arrays.append(stretched[tuple(map(slice, scene.drawn.moved))].ravel())
    return arrays if all(value_texts(drawn) is not None for drawn in arrays) else []


def value_texts(values: NDArray[Any]) -> list[str] | None:
    """Format values briefly; None if a value is too long or not supported."""
    kind = values.dtype.kind
    if kind in "biu":
        texts = [str(int(value)) for value in values.ravel()]
    elif kind == "f" or values.dtype.name == "bfloat16":
        texts = [f"{float(value):.3g}" for value in values.ravel()]
    elif kind == "U":
        texts = [str(value) for value in values.ravel()]
    else:
        return None
    return texts if all(len(text) <= LONGEST for text in texts) else None


def letters(shape: Shape, first: str) -> list[str]:
    """Name cells a to z, aa to az, and so on."""
    alphabet = [chr(ord(first) + n) for n in range(26)]
    names = (name for length in count(1) for name in product(alphabet, repeat=length))
    return ["".join(name) for name in islice(names, prod(shape))]


def _pair(scene: Scene, data: list[Cell], moved: list[Cell]) -> dict[int, list[int]]:
    """For each cell of the data, return the numbers of the moved cells linked to it, in order.

    Linked cells get the same colour; moved cells without a link get a mark.
    """
    met: dict[int, list[int]] = {}
    for link in scene.links if not scene.is_refused else ():
        if not link.data:
            for m in link.moved:
                moved[m].mark = "filled" if scene.gathers else "dropped"
            continue
        for d, m in zip(link.data, link.moved, strict=True):
            data[d].colour = moved[m].colour = link.colour
            met.setdefault(d, []).append(m)
    return met


def _gather(scene: Scene, data: list[Cell], moved: list[Cell], fill_value: object) -> None:
    """Write the values that a gather reads to the cells of its result."""
    call, filled = scene.call, ""
    for d, readers in _pair(scene, data, moved).items():
        for m in readers:
            moved[m].lines = data[d].lines
            moved[m].tip += f" = {data[d].tip}"
    if call.mode in FILLING:  # for strings, 0 is the empty string
        filled = (value_texts(fill_item(call.op, call.data.dtype, fill_value)) or ["fill"])[0]
    for cell in moved:
        cell.lines = [filled] if cell.mark else cell.lines


def _scatter(scene: Scene, data: list[Cell], moved: list[Cell], values: list[NDArray[Any]]) -> None:
    """Write the result of a scatter to its cells, and mark overwritten updates."""
    call, complete = scene.call, scene.drawn.indices == scene.call_shapes.indices
    for d, chain in _pair(scene, data, moved).items():
        if call.reduction == "none":
            for m in chain[:-1]:
                moved[m].mark = "lost"
            lines = moved[chain[-1]].lines
        else:
            terms = [*data[d].lines * call.include_self, *(moved[m].lines[0] for m in chain)]
            lines = expression(call.reduction, terms)
            if values and complete and len(terms) > 1:
                positions = np.zeros((len(chain), 1), np.int64)
                initial, values_written = values[0][d : d + 1], values[1][chain]
                folded = apply(
                    "scatter_nd",
                    initial,
                    positions,
                    values_written,
                    **call.attributes.fold_keywords,
                )
                lines.append("= " + (value_texts(folded) or ["?"])[0])
        data[d].lines = lines
        data[d].tip += " = " + " ".join(lines)


def shortened(texts: Sequence[str], most: int, first: int = 2, last: int = 1) -> list[str]:
    """Replace the middle of a list with an ellipsis if it contains more than `most` strings."""
    if len(texts) <= most:
        return list(texts)
    return [*texts[:first], "\N{HORIZONTAL ELLIPSIS}", *texts[-last:]]


def expression(reduction: str, terms: list[str]) -> list[str]:
    """Format a fold as lines that fit into a cell."""
    if len(terms) == 1:
        return list(terms)
    before, sign, after = ROWS[reduction].picture
    shown = shortened(terms, 5, 3)
    if sign == ",":
        pieces = [term + sign for term in shown[:-1]] + shown[-1:]
    else:
        pieces = shown[:1] + [sign + term for term in shown[1:]]
    pieces[0], pieces[-1] = before + pieces[0], pieces[-1] + after.format(n=len(terms))
    lines = [""]
    for piece in pieces:
        if lines[-1] and len(lines[-1]) + len(piece) > WIDEST:
            lines.append("")
        lines[-1] += piece
    return lines
