"""A table of quantized rows that stays open, with its scales."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from itertools import islice
from math import ceil
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gatherum import conversion, errors, shapes
from gatherum.dtypes import is_index
from gatherum.files.handle.table import Table
from gatherum.files.operands import Held, Operand, find
from gatherum.files.receivers import Receiver
from gatherum.quantized import gather as quantized
from gatherum.quantized.formats import name_of, result_dtype
from gatherum.quantized.spec import Attributes, Spec, as_attributes, codes_of, spec_of

__all__ = ["QuantizedTable"]

OPEN, GATHER = "open", "gather"
AHEAD = 4  # batches that are read before they are asked for


class QuantizedTable(Table):
    """A table whose rows `gather` dequantizes; `open` with `scales` returns it.

    `shape` is that of the values, `dtype` that of the result, and `nbytes` counts the quantized
    values alone, as do `stats`. It has no `gather_nd` and no `gather_elements`.
    """

    def __init__(
        self,
        table: Operand,
        cache: str | int,
        readers: int | None,
        direct: bool,
        storage_options: Mapping[str, Any] | None,
        scales: Operand,
        zero_points: Operand | None,
        how: Mapping[str, Any],
    ) -> None:
        super().__init__(table, cache, readers, direct, storage_options)
        self._how = dict(how)
        self._scales = Table(scales, cache, readers, False, storage_options)
        self._zeros: Table | None = None
        if zero_points is not None:
            self._zeros = Table(zero_points, cache, readers, False, storage_options)
        self._given_scales = scales, zero_points
        self._check()

    def _check(self) -> None:
        """Check the parts of the table against each other."""
        how, block = self._how, self._how["block_size"]
        some = 1 if block is None else block
        attributes = as_attributes(
            0, how["quantize_axis"], some, how["bits"], how["dtype"], "raise", True
        )
        given = [(shape, name_of(kind)) for shape, kind in map(_stored, self._tables())]
        codes, scales, *zeros = given
        if block is None:
            in_byte = codes_of(codes[1], attributes.bits).in_byte
            block = _block_size(codes[0], scales[0], attributes.quantize_axis, in_byte)
            attributes = attributes._replace(block_size=block)
        kind = result_dtype(attributes.result)
        if not isinstance(kind, np.dtype):
            raise errors.no_values(OPEN, kind)
        spec = spec_of(attributes, codes, scales, zeros[0] if zeros else None)
        self._spec, self._attributes, self._dtype = spec, attributes, kind

    def _tables(self) -> list[Table]:
        return [self, self._scales, *([] if self._zeros is None else [self._zeros])]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values."""
        self._opened("shape")
        return self._spec.values

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of what `gather` returns."""
        self._opened("dtype")
        return self._dtype

    def gather(
        self,
        indices: Operand,
        axis: int = 0,
        *,
        mode: Any = "raise",
        negative: bool = True,
        fill_value: Any = 0,
        out: Any = None,
    ) -> Any:
        """Take slices along `axis` and dequantize them, as `gatherum.gather_quantized` does.

        Parameters
        ----------
        indices : array
            As in `Table.gather`, but no path.
        axis, mode, negative, out
            As in `Table.gather`.
        fill_value : int
            0: what invalid indices give in the modes ``"fill"`` and ``"drop"``.

        Returns
        -------
        ndarray
            The result, or `out`.
        """
        self._opened(GATHER)
        if not conversion.is_integer_zero(fill_value):
            raise ValueError(f"{GATHER}: `fill_value` must be 0 for a quantized table, got "
                             f"{fill_value!r}")  # fmt: skip
        how, spec = self._call(axis, mode, negative)
        found = find("indices", indices, GATHER)
        if not isinstance(found, Held):
            raise TypeError(
                f"{GATHER}: `indices` must be an array for a quantized table, got a path"
            )
        places = conversion.as_indices(GATHER, found.array)
        shape = spec.result_shape(places.shape)
        shapes.check_result(GATHER, shape, self._dtype)
        receiver = None
        if out is not None:
            receiver = Receiver(GATHER, out, shape, self._dtype)
            receiver.check_apart(None, found)
        result = self._dequantized(spec, how, places, shape)
        if receiver is None:
            return result
        receiver.array[...] = result
        return out

    def _call(self, axis: object, mode: object, negative: object) -> tuple[Attributes, Spec]:
        """Return the attributes of a lookup, and its spec."""
        plain, spec = self._attributes, self._spec
        if type(axis) is int and axis == 0 and mode == "raise" and negative is True:
            return plain, spec
        how = as_attributes(
            axis, plain.quantize_axis, plain.block_size, plain.bits, plain.result, mode, negative
        )
        spec = spec._replace(axis=shapes.resolve_axis(GATHER, spec.values, how.axis))
        if spec.divides_bytes:
            raise ValueError(
                f"{GATHER}: `axis` must not be the last one of a table with {spec.codes.in_byte} "
                f"values in a byte, got {axis}"
            )
        return how, spec

    def _dequantized(
        self, spec: Spec, how: Attributes, places: NDArray[Any], shape: tuple[int, ...]
    ) -> NDArray[Any]:
        if not is_index(places.dtype):
            raise errors.not_an_index_dtype(GATHER, places.dtype, False)
        rows = quantized.resolve_rows(places, spec.axis, spec.rows, how.mode, how.negative)
        taken, blocks, numbers = quantized.parts_of(spec, rows)
        codes = Table.gather(self, taken, spec.axis)
        factors, *zeros = (part.gather(blocks, spec.axis) for part in self._tables()[1:])
        result: NDArray[Any] = np.empty(shape, self._dtype)
        quantized.dequantize(
            spec.of_rows(taken.size), codes, numbers, factors, zeros[0] if zeros else None, result
        )
        return result

    def gather_nd(self, *_: Any, **__: Any) -> NoReturn:
        """Raise NotImplementedError."""
        raise NotImplementedError("gather_nd: a quantized table has `gather` alone")

    def gather_elements(self, *_: Any, **__: Any) -> NoReturn:
        """Raise NotImplementedError."""
        raise NotImplementedError("gather_elements: a quantized table has `gather` alone")

    def rows(
        self, batches: Iterable[Any], axis: int = 0, **attributes: Any
    ) -> Generator[NDArray[Any], None, None]:
        """Yield the slices that each batch of indices names, dequantized; as `Table.rows`."""
        self._opened("rows")
        given = iter(batches)
        pending = deque(self.submit(batch, axis, **attributes) for batch in islice(given, AHEAD))
        while pending:
            yield pending.popleft().result()
            pending.extend(self.submit(batch, axis, **attributes) for batch in islice(given, 1))

    def prefetch(self, indices: Operand) -> None:
        """Begin to read rows and their scales, and return at once; as `Table.prefetch`."""
        super().prefetch(indices)
        if self._spec.quantize_axis != 0:
            for part in self._tables()[1:]:
                part.prefetch(indices)

    def reload(self) -> None:
        """Open the table and its scales again, as they are now."""
        for part in self._tables()[1:]:
            part.reload()
        super().reload()
        self._check()

    def close(self) -> None:
        """Close the table and its scales."""
        super().close()
        for part in self._tables()[1:]:
            part.close()

    def __reduce__(self) -> tuple[Callable[..., Table], tuple[Any, ...]]:
        """Pickle how to open it again."""
        _, given = super().__reduce__()
        return QuantizedTable, (*given, *self._given_scales, self._how)


def _stored(table: Table) -> tuple[tuple[int, ...], Any]:
    """Return the shape and the dtype of what a table stores."""
    opened = table._opened(OPEN).table
    return opened.shape, opened.dtype


def _block_size(codes: tuple[int, ...], scales: tuple[int, ...], axis: int, in_byte: int) -> int:
    """Return how many values share a scale, where the shapes leave no choice."""
    if not -len(codes) <= axis < len(codes) or len(scales) != len(codes):
        return 1  # which the check of the shapes refuses
    last = axis % len(codes) == len(codes) - 1
    size, blocks = codes[axis] * (in_byte if last else 1), scales[axis]
    block = ceil(size / max(blocks, 1))
    if blocks > 1 and size % blocks:
        raise ValueError(
            f"{OPEN}: `block_size` must be given where {blocks} scales do not divide {size} values"
        )
    return max(block, 1)
