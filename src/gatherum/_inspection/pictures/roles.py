"""Sort the dimensions of a call by role, and reduce a large call to a small one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import prod
from typing import NamedTuple

from gatherum._model.call import Call
from gatherum._model.errors import Shape
from gatherum._model.operators import Operator

# The largest sizes at which the text of a picture is readable.
MOST_ACROSS, MOST_DOWN, MOST_LINES = 12, 15, 20
MOST_OF_A_DIMENSION = 6
# An array with many short dimensions has too many cells to draw. At most three dimensions, the
# longest ones, are drawn completely.
MOST_PLACES = MOST_OF_A_DIMENSION**3


class CallShapes(NamedTuple):
    """The dimensions of a call by role.

    `named` are the indexed dimensions of the data, `outer` the dimensions before them (including
    batch dimensions), `suffix` the dimensions after them. `inner` contains the dimensions that only
    the indices have. If every element has a separate index, `named` is the complete shape of the
    data, and `inner` is the complete shape of the indices.
    """

    operator: Operator
    axis: int
    outer: Shape
    named: Shape
    inner: Shape
    suffix: Shape

    @classmethod
    def of(cls, call: Call) -> CallShapes:
        """Sort the dimensions of a call."""
        data = call.data.shape
        indices = call.indices.shape
        operator = call.operator
        axis = call.resolved_axis
        if operator.addressing.shares_back:
            return cls(operator, axis, (), data, indices, ())
        roles = operator.dimensions(len(data), indices, axis)
        inner, end = tuple(indices[d] for d in roles.entries), roles.indexed.stop
        return cls(operator, axis, data[:axis], data[axis:end], inner, data[end:])

    @property
    def data(self) -> Shape:
        """The data's shape."""
        return self.outer + self.named + self.suffix

    @property
    def indices(self) -> Shape:
        """The shape of the indices."""
        return self.entries + ((len(self.named),) if self.operator.takes_tuples else ())

    @property
    def entries(self) -> Shape:
        """The shape of the indices without the tuple dimension."""
        return self.inner if self.has_index_per_slice else self.outer + self.inner

    @property
    def moved(self) -> Shape:
        """The shape of a gather's result, or of a scatter's updates."""
        return self.outer + self.inner + self.suffix

    @property
    def sizes(self) -> Shape:
        """The sizes of the dimensions that the components of an index address."""
        return self.named[self.axis :][:1] if self.has_index_per_element else self.named

    @property
    def has_index_per_element(self) -> bool:
        """Whether every element has a separate index."""
        return self.operator.addressing.shares_back

    @property
    def has_index_per_slice(self) -> bool:
        """Whether every index addresses one slice at each position of the outer dimensions."""
        return not self.operator.addressing.shares_front

    @property
    def runs_across(self) -> bool:
        """Whether the picture runs from left to right instead of from top to bottom."""
        if self.has_index_per_element:
            return len(self.named) > 1 and self.axis != len(self.named) - 2
        return self.operator.takes_tuples or bool(self.suffix)

    @property
    def draws_index_array(self) -> bool:
        """Whether the indices are drawn as an array with the shape of the cells that they move."""
        return self.has_index_per_element or (not self.runs_across and len(self.inner) > 1)

    @property
    def columns(self) -> tuple[bool, bool]:
        """Whether the data, and the moved array, are drawn with an additional dimension of size 1.

        If slices are single elements, a vector of them is drawn as a column, with an index next to
        each element.
        """
        items = self.runs_across and not self.suffix
        is_widened = (items and not self.has_index_per_element) or (
            not self.runs_across and not self.inner
        )
        return items and len(self.data) == 1, is_widened


def planes(shape: Shape, column: bool = False) -> tuple[int, int, int]:
    """Return the numbers of planes, rows and columns with which an array is drawn."""
    padded = (1, 1, *shape, *(1,) * column)
    return prod(padded[:-2]), padded[-2], padded[-1]


def excess(shapes: CallShapes, most_across: int = MOST_ACROSS) -> int:
    """Return the number of cells, across and down, that exceed the limits of a picture."""
    data, moved = map(planes, (shapes.data, shapes.moved), shapes.columns)
    if shapes.runs_across:
        components = min(len(shapes.named), 4) if shapes.operator.takes_tuples else 1
        across = [data[2] + moved[2] + (moved[2] if shapes.has_index_per_element else components)]
        down = [n * (rows + 1) for n, rows, _ in (data, moved)]
    else:
        across = [n * (columns + 1) - 1 for n, _, columns in (data, moved)]
        down = [data[1] + moved[1] + (moved[1] if shapes.draws_index_array else 1)]
    if 0 in shapes.moved:  # indices that move nothing are drawn in a separate row
        (down if shapes.runs_across else across).append(prod(shapes.entries))
    over = [n - most_across for n in across] + [n - MOST_DOWN for n in down]
    over.append(prod(shapes.outer + shapes.inner) - MOST_LINES)
    return sum(max(0, n) for n in over)


def reduce(
    shapes: CallShapes,
    named: Callable[[CallShapes], Shape] | None = None,
    most_across: int = MOST_ACROSS,
) -> CallShapes:
    """Shrink a call until it fits, with at most `most_across` cells side by side.

    If the indices are known, `named` returns the number of positions to draw for each named
    dimension. Otherwise, named dimensions shrink like other dimensions.
    """

    def shown(shapes: CallShapes) -> CallShapes:
        return shapes._replace(named=named(shapes)) if named else shapes

    roles = ("suffix", "outer", "inner") if named else ("suffix", "outer", "named", "inner")
    for role in roles:
        shapes = _resized(
            shapes, role, (min(n, MOST_OF_A_DIMENSION) for n in getattr(shapes, role))
        )
    while prod(shapes.outer + shapes.inner) > MOST_PLACES:  # before reading all these indices
        shapes = _gladly(_steps(shapes, ("outer", "inner")))
    while cells_over := excess(shown(shapes), most_across):
        steps = [
            step
            for step in _steps(shapes, roles)
            if excess(shown(step[1]), most_across) < cells_over
        ]
        if not steps and prod(shown(shapes).data) > MOST_PLACES:
            steps = list(_steps(shapes, roles))  # one step may not help where several steps do
        if not steps:
            break
        shapes = _gladly(steps)
    return shown(shapes)


def _gladly(steps: Iterable[tuple[int, CallShapes]]) -> CallShapes:
    return max(steps, key=lambda step: step[0])[1]


def _resized(shapes: CallShapes, role: str, sizes: Iterable[int]) -> CallShapes:
    return shapes._replace(**{role: tuple(sizes)})  # type: ignore[arg-type]  # every role is a shape


def _steps(shapes: CallShapes, roles: tuple[str, ...]) -> Iterator[tuple[int, CallShapes]]:
    """Yield copies of a call in which one dimension is smaller, each with its priority.

    Large dimensions and leading dimensions have a high priority, indices a low one.
    """
    for role in roles:
        sizes = getattr(shapes, role)
        for d, size in enumerate(sizes):
            if size < 2:
                continue
            weight = size + {"suffix": 2, "outer": 3, "named": 1, "inner": 0}[role]
            smaller_sizes = (*sizes[:d], size - 1, *sizes[d + 1 :])
            smaller = _resized(shapes, role, smaller_sizes)
            if shapes.has_index_per_element and d != shapes.axis:
                weight += 2 * (len(sizes) - 1 - d)
                if role == "named":  # the indices must not exceed the data in this dimension
                    smaller = smaller._replace(inner=tuple(map(min, shapes.inner, smaller_sizes)))
            yield weight, smaller
