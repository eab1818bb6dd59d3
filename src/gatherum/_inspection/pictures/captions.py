"""Write the text around a picture: the call, its shapes, and notes."""

from __future__ import annotations

from gatherum._model.call import OPERAND_NAMES, Attributes, Call
from gatherum._model.errors import Shape

from .cells import shortened
from .model import Scene
from .roles import CallShapes


def call_text(call: Call) -> str:
    """Format a call as Python code, without attributes that have default values."""
    parts = list(OPERAND_NAMES[: 3 if call.operator.scatters else 2])
    if call.axis or not call.operator.takes_tuples:
        parts.append(f"{call.operator.attribute}={call.axis}")
    usual = Attributes(call.op)._asdict()
    attributes = call.attributes.fold_keywords if call.reduction != "none" else {}
    attributes |= {"mode": call.mode, "negative": call.negative}
    parts += [f"{name}={value!r}" for name, value in attributes.items() if value != usual[name]]
    return f"{call.op}({', '.join(parts)})"


def shapes_text(call: Call) -> str:
    """Format the operands' dtypes and shapes."""
    text = f"data {call.data.dtype} {_shape(call.data.shape)}, "
    text += f"indices {call.indices.dtype} {_shape(call.indices.shape)}"
    if call.updates is not None:
        return f"{text}, updates {_shape(call.updates.shape)}"
    return f"{text} \N{RIGHTWARDS ARROW} {_shape(CallShapes.of(call).moved)}"


def _shape(shape: Shape) -> str:
    """Format a shape with no-break spaces, so that no line breaks inside it."""
    text = str(shape)
    if len(shape) > 8:
        text = f"({', '.join(shortened([*map(str, shape)], 8, 4, 2))})"
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def titles(scene: Scene) -> dict[str, tuple[str, str]]:
    """Return the names and shapes that are drawn next to the arrays."""
    drawn = scene.drawn if scene.has_example_indices else scene.call_shapes
    result, updates = ("data", "result") if scene.gathers else ("result", "updates")
    return {
        "before": ("data", _short(drawn.data)),
        "data": (result, _short(drawn.data)),
        "indices": ("indices", _short(drawn.indices)),
        "moved": (updates, _short(drawn.moved)),
    }


def _short(shape: Shape) -> str:
    text = str(shape)
    return text if len(text) <= 16 else f"({shape[0]}, \N{HORIZONTAL ELLIPSIS}, {shape[-1]})"


def notes(scene: Scene, values: bool) -> str:
    """Describe the parts of the call that the picture omits, and examples that it contains."""
    drawn, full = scene.drawn, scene.call_shapes
    sentences = []
    if scene.has_example_indices and 0 not in drawn.entries:
        sentences.append("Only shapes are known, so the indices are an example.")
    if scene.has_example_indices and scene.is_reduced:
        sentences.append(
            f"A small call of the same form is drawn: data {_shape(drawn.data)}, "
            f"indices {_shape(drawn.indices)}."
        )
    if not scene.has_example_indices and drawn.indices != full.indices:
        sentences.append(
            f"Only the first indices are drawn, {_shape(drawn.indices)} of "
            f"{_shape(full.indices)}, and what they do."
        )
    if not scene.has_example_indices and drawn.data != full.data:
        sentences.append("Only some places of the data are drawn, with their positions.")
    if not values and 0 not in drawn.data:
        sentences.append(
            "Letters stand for the elements of data."
            if scene.gathers
            else "Small letters stand for elements of data, capitals for those of updates."
        )
    return " ".join(sentences)
