"""Write the text around a picture: the call, its shapes, and what is left out or made up."""

from __future__ import annotations

import textwrap

from ..call import Call, FoldRule
from ..errors import Shape
from .model import Scene
from .roles import Form
from .svg import BOLD_ADVANCE, SANS_ADVANCE


def call_text(s: Call) -> str:
    """Write a call as it stands in a program, with the attributes that say something."""
    scatters = s.updates is not None
    parts = ["data", "indices"] + ["updates"] * scatters
    if s.axis or not s.operator.tuples:
        parts.append(f"{s.operator.attribute}={s.axis}")
    usual = FoldRule()._asdict()
    how = s.attributes.fold_keywords.items() if s.reduction != "none" else ()
    parts.extend(f"{name}={value!r}" for name, value in how if value != usual[name])
    parts.extend([] if s.mode == "raise" else [f"mode={s.mode!r}"])
    parts.extend([] if s.negative else ["negative=False"])
    return f"{s.op}({', '.join(parts)})"


def shapes_text(s: Call) -> str:
    """Write the operands' dtypes and shapes."""
    text = f"data {s.data.dtype} {_shape(s.data.shape)}, "
    text += f"indices {s.indices.dtype} {_shape(s.indices.shape)}"
    if s.updates is not None:
        return f"{text}, updates {_shape(s.updates.shape)}"
    return f"{text} \N{RIGHTWARDS ARROW} {_shape(Form.of(s).moved)}"


def _shape(shape: Shape) -> str:
    if len(shape) > 8:
        shown = [*map(str, shape[:4]), "\N{HORIZONTAL ELLIPSIS}", *map(str, shape[-2:])]
        return _unbroken(f"({', '.join(shown)})")
    return _unbroken(str(shape))


def _unbroken(text: str) -> str:
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def titles(scene: Scene) -> dict[str, tuple[str, ...]]:
    """Return the names and shapes that stand beside the arrays."""
    form, s = (scene.form if scene.made_up else scene.full), scene.call
    gathers = s.updates is None
    return {
        "before": ("data", _short(form.data)),
        "data": ("data" if gathers else "result", _short(form.data)),
        "indices": ("indices", _short(form.indices)),
        "moved": ("result" if gathers else "updates", _short(form.moved)),
    }


def _short(shape: Shape) -> str:
    text = str(shape)
    if len(text) <= 16:
        return text
    return f"({shape[0]}, \N{HORIZONTAL ELLIPSIS}, {shape[-1]})"


def notes(scene: Scene, values: bool) -> list[str]:
    """Say what the picture leaves out or makes up."""
    form, full = scene.form, scene.full
    found = []
    if scene.made_up:
        if scene.entries:
            found.append("The indices are an example, for only shapes are given.")
        if scene.reduced:
            found.append(
                f"A small call of the same form is drawn: data {_shape(form.data)}, "
                f"indices {_shape(form.indices)}."
            )
    else:
        if not scene.complete:
            found.append(
                f"Only the first indices are drawn, {_shape(form.indices)} of "
                f"{_shape(full.indices)}, and what they do."
            )
        if form.data != full.data:
            found.append("Only some places of the data are drawn, with their positions.")
    if not values and 0 not in form.data:
        scatters = scene.call.updates is not None
        found.append(
            "Small letters stand for elements of data, capitals for those of updates."
            if scatters
            else "Letters stand for the elements of data."
        )
    return [" ".join(found)] if found else []


def wrapped(text: str, size: float, width: float, bold: bool = False) -> list[str]:
    """Break text into lines that fit."""
    advance = size * (BOLD_ADVANCE if bold else SANS_ADVANCE)
    return textwrap.wrap(text, max(20, int(width / advance))) or [""]
