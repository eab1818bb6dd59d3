"""Fill the cells of a picture with text and marks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..call import Array, Call
from ..conversion import fill_item
from ..errors import Shape
from ..modes import FILLING
from ..plans import apply
from ..reductions import ROWS
from .model import Link, Scene
from .roles import Form

LONGEST = 7  # characters of a value; longer ones are named by letters instead
WIDEST = 9  # characters of a line in a cell


@dataclass(slots=True)
class Cell:
    """A cell: lines of text, the colour of what it shares a place with, and its marks."""

    lines: list[str]
    colour: int = -1
    marks: set[str] = field(default_factory=set)
    tip: str = ""


@dataclass(frozen=True, slots=True)
class CallValues:
    """The values of a call, where they are known."""

    data: Array | None = None
    indices: Array | None = None
    updates: Array | None = None
    fill_value: object = 0


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of the data (of a scatter: its result) and of what moves (a gather's result, a
    scatter's updates), in row-major order, and whether they show values. `before` is a scatter's
    data.
    """

    data: list[Cell]
    moved: list[Cell]
    before: list[Cell]
    links: list[Link]
    values: bool


def fill_cells(scene: Scene, operands: CallValues) -> Cells:
    """Write into every cell what a call leaves there."""
    form = scene.form
    data = _data_texts(scene, operands.data)
    gathers = scene.call.updates is None
    updates = None if gathers else _updates_texts(scene, operands.updates)
    values = data is not None and (gathers or updates is not None)
    if data is None or not values:
        data = letters(form.data, "a")
    cells = [Cell([text]) for text in data]
    places = [_place(scene, "data", where) for where in np.ndindex(form.data)]
    for cell, tip in zip(cells, places, strict=True):
        cell.tip = tip
    links = list(scene.links())
    before = [] if gathers else [replace(cell, marks=set()) for cell in cells]
    if gathers:
        moved = _gathered(scene, links, cells, operands.fill_value)
    else:
        texts = updates if values and updates is not None else letters(form.moved, "A")
        moved = [Cell([text]) for text in texts]
        for cell, where in zip(moved, np.ndindex(form.moved), strict=True):
            cell.tip = f"updates{list(where)}"
        _scatter(scene, links, cells, moved, operands if values else CallValues())
    return Cells(cells, moved, before, links, values)


def _place(scene: Scene, name: str, where: Shape) -> str:
    return f"{name}{[scene.shown[d][p] for d, p in enumerate(where)]}"


def letters(shape: Shape, first: str) -> list[str]:
    """Name cells a to z, aa to az, and so on."""
    names = []
    for number in range(int(np.prod(shape))):
        name, rest = "", number
        while True:
            name = chr(ord(first) + rest % 26) + name
            rest = rest // 26 - 1
            if rest < 0:
                break
        names.append(name)
    return names


def _data_texts(scene: Scene, data: Array | None) -> list[str] | None:
    if data is None or scene.made_up:
        return None
    # One by one: NumPy takes at most 63 lists of places at once.
    return value_texts(np.array([data[place] for place in product(*scene.shown)], data.dtype))


def _updates_texts(scene: Scene, updates: Array | None) -> list[str] | None:
    return None if updates is None else value_texts(_leading(scene, updates))


def _leading(scene: Scene, updates: Array) -> Array:
    """Return the updates that are drawn."""
    stretched = np.broadcast_to(updates, scene.full.moved)
    return np.asarray(stretched[tuple(map(slice, scene.form.moved))])


def value_texts(values: NDArray[Any]) -> list[str] | None:
    """Write values briefly; None when they cannot be."""
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


def _pairs(form: Form, link: Link) -> list[tuple[int, int]]:
    """Return the numbers of the cells that a link brings together: data, what moves."""
    if link.data is None:
        return []
    data = _numbers(form.drawn_data)[link.data].ravel().tolist()
    moved = _numbers(form.drawn_moved)[link.moved].ravel().tolist()
    return list(zip(data, moved, strict=True))


def _numbers(shape: Shape) -> NDArray[np.int64]:
    return np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)


def _gathered(scene: Scene, links: list[Link], data: list[Cell], fill_value: object) -> list[Cell]:
    """Return the cells of a gather's result; colour what is read."""
    form = scene.form
    moved = [Cell([""]) for _ in np.ndindex(form.moved)]
    for cell, where in zip(moved, np.ndindex(form.moved), strict=True):
        cell.tip = f"result{list(where)}"
    filled = _fill_text(scene.call, fill_value)
    numbers = _numbers(form.drawn_moved)
    for link in links:
        if link.data is None:
            for m in numbers[link.moved].ravel().tolist():
                moved[m].lines, moved[m].marks = [filled], {"filled"}
        for d, m in _pairs(form, link):
            data[d].colour = moved[m].colour = link.colour
            moved[m].lines = list(data[d].lines)
            moved[m].tip += f" = {data[d].tip}"
    if scene.refused:
        for cell in moved:
            cell.lines, cell.marks = [""], {"none"}
    return moved


def _fill_text(s: Call, fill_value: object) -> str:
    """Write what an invalid index gives: of strings, 0 is the empty one."""
    if s.mode not in FILLING:
        return ""
    return (value_texts(fill_item(s.op, s.data.dtype, fill_value)) or ["fill"])[0]


def _scatter(
    scene: Scene, links: list[Link], data: list[Cell], moved: list[Cell], operands: CallValues
) -> None:
    """Write into the cells of the data what a scatter leaves there; mark the updates."""
    form, s = scene.form, scene.call
    arrivals: dict[int, list[int]] = {}
    numbers = _numbers(form.drawn_moved)
    for link in links:
        for d, m in _pairs(form, link):
            data[d].colour = moved[m].colour = link.colour
            arrivals.setdefault(d, []).append(m)
        if link.data is None and not scene.refused:
            for m in numbers[link.moved].ravel().tolist():
                moved[m].marks.add("dropped")
    for d, chain in arrivals.items():
        if s.reduction == "none":
            for m in chain[:-1]:
                moved[m].marks.add("lost")
            lines = list(moved[chain[-1]].lines)
        else:
            first = data[d].lines if s.include_self else []
            terms = [*first, *(moved[m].lines[0] for m in chain)]
            lines = expression(s.reduction, terms)
            if operands.data is not None and scene.complete and len(terms) > 1:
                lines.append("= " + _folded(scene, operands, d, chain))
        data[d].lines = lines
        data[d].tip += " = " + " ".join(lines)
    for cell in data:
        cell.tip = cell.tip.replace("data", "result", 1)
        if scene.refused:
            cell.lines, cell.colour, cell.marks = [""], -1, {"none"}


def expression(reduction: str, terms: list[str]) -> list[str]:
    """Write a fold as lines that fit into a cell."""
    if len(terms) == 1:
        return list(terms)
    before, sign, after = ROWS[reduction].picture
    shown = terms if len(terms) <= 5 else [*terms[:3], "\N{HORIZONTAL ELLIPSIS}", terms[-1]]
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


def _folded(scene: Scene, operands: CallValues, place: int, chain: list[int]) -> str:
    """Return the value of a fold that is shown, as the operator itself makes it."""
    if operands.data is None or operands.updates is None:
        return ""
    s = scene.call
    old = operands.data[np.ix_(*scene.shown)] if scene.shown else operands.data
    updates = _leading(scene, operands.updates).ravel()[chain]
    folded = apply(
        "scatter_nd",
        old.ravel()[place : place + 1],
        np.zeros((len(chain), 1), np.int64),
        updates,
        **s.attributes.fold_keywords,
    )
    return (value_texts(folded) or ["?"])[0]
