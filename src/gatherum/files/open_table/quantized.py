"""A table of quantized rows that stays open, and its scales."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from time import perf_counter_ns
from typing import Any, Never, NoReturn

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments import conversion
from gatherum._functions.quantized import gather as quantized
from gatherum._functions.quantized.formats import NAME, name_of
from gatherum._functions.quantized.spec import (
    QuantizedAttributes,
    Spec,
    as_attributes,
    codes_of,
    spec_of,
)
from gatherum._model import errors, shape_limits
from gatherum._model.dtypes import is_index, load_dtype
from gatherum._model.errors import Shape
from gatherum.files.arguments.operands import ArrayOperand, Operand, find_operand
from gatherum.files.arguments.receivers import Receiver
from gatherum.files.formats.format import Location

from .lifetime import anchored
from .state import Settings, State
from .table import Table

Ints = NDArray[np.int64]
OPEN, GATHER = "open", "gather"
REFUSALS = (TypeError, ValueError, IndexError, ImportError)


class QuantizedState(State):
    """An opened table of quantized values with its scales, checked against each other.

    `shape` is the shape of the values, `dtype` the dtype of the results.
    """

    def __init__(
        self,
        where: Location | ArrayOperand,
        beside: list[Location | ArrayOperand],
        settings: Settings,
        options: Mapping[str, Any],
    ) -> None:
        """Open the table, its scales and its zero points, and check that they match."""
        super().__init__(where, settings)
        self.memory = None  # its rows are dequantized
        settings = settings._replace(direct=False)
        self.beside = [State(path, settings) for path in beside]
        codes, scales, *zeros = (
            (part.table.shape, name_of(part.table.dtype)) for part in (self, *self.beside)
        )
        block, q = options["block_size"], options["quantize_axis"]
        some = 1 if block is None else block
        attributes = as_attributes(0, q, some, options["bits"], options["dtype"], "raise", True)
        if block is None:
            in_byte = codes_of(codes[1], attributes.bits).in_byte
            block = _block_size(codes[0], scales[0], attributes.quantize_axis, in_byte)
            attributes = attributes._replace(block_size=block)
        result_dtype = load_dtype(attributes.result)
        if not isinstance(result_dtype, np.dtype):
            raise errors.needs_ml_dtypes(OPEN, result_dtype)
        self.spec = spec_of(attributes, codes, scales, zeros[0] if zeros else None)
        self.attributes, self.shape, self.dtype = attributes, self.spec.values, result_dtype
        self.nbytes = self.table.nbytes

    def parts(self, row_numbers: Ints) -> list[tuple[State, Ints]]:
        """Return the table, its scales and its zero points, each with the row numbers to read."""
        spec = self.spec._replace(axis=0)
        block_numbers = (
            np.unique(row_numbers // spec.block_size) if spec.quantize_axis == 0 else row_numbers
        )
        in_byte = spec.codes.in_byte if spec.divides_bytes else 1
        scales, *zeros = self.beside
        parts: list[tuple[State, Ints]] = [
            (self, np.unique(row_numbers // in_byte)),
            (scales, block_numbers),
        ]
        return parts + [(part, np.unique(block_numbers // in_byte)) for part in zeros]

    @property
    def opened_parts(self) -> tuple[State, ...]:
        """The arrays that lookups read: the values, the scales and the zero points."""
        return (self, *self.beside)

    def gatherer(
        self, attributes: dict[str, Any], fill_value: object
    ) -> Callable[[Ints], NDArray[Any]]:
        """Return a function that gathers with the same arguments in each call."""
        return lambda indices: self.gathered(indices, attributes, fill_value)[0]

    def gathered(
        self, indices: Operand, attributes: dict[str, Any], fill_value: object, out: Any = None
    ) -> tuple[Any, int, int]:
        """Return a gather's result or `out`, the number of indices, and the codes' size in bytes.

        The attributes are the arguments of `QuantizedTable.gather`.
        """
        if not conversion.is_integer_zero(fill_value):
            raise ValueError(f"{GATHER}: `fill_value` must be 0 for a quantized table, got "
                             f"{fill_value!r}")  # fmt: skip
        try:
            with self:
                return self._gathered(indices, attributes, out)
        except REFUSALS as error:
            raise _named(error, GATHER)  # noqa: B904  # the same error

    def _gathered(
        self, indices: Operand, attributes: dict[str, Any], out: Any
    ) -> tuple[Any, int, int]:
        """Check the arguments and gather, as `gathered` describes."""
        axis, mode, negative = (attributes[name] for name in ("axis", "mode", "negative"))
        quantization, spec = self.attributes, self.spec
        if not (type(axis) is int and axis == 0 and mode == "raise" and negative is True):
            q = quantization.quantize_axis
            block = quantization.block_size
            result = quantization.result
            quantization = as_attributes(axis, q, block, quantization.bits, result, mode, negative)
            spec = spec._replace(
                axis=shape_limits.resolve_axis(GATHER, spec.values, quantization.axis)
            )
        operand = find_operand("indices", indices, GATHER)
        if not isinstance(operand, ArrayOperand):
            raise TypeError(
                f"{GATHER}: `indices` must be an array for a quantized table, got a path"
            )
        indices_array = conversion.as_indices(GATHER, operand.array)
        shape = spec.result_shape(indices_array.shape)
        shape_limits.check_result(GATHER, shape, self.dtype)
        nbytes = self.nbytes * indices_array.size // max(spec.rows, 1)
        if out is None:
            return (
                self.dequantized(spec, quantization, indices_array, shape),
                indices_array.size,
                nbytes,
            )
        receiver = Receiver(GATHER, out, shape, self.dtype)
        for part in self.opened_parts:
            receiver.check_apart(part.table.location, operand)
        receiver.array[...] = self.dequantized(spec, quantization, indices_array, shape)
        return out, indices_array.size, nbytes

    def dequantized(
        self,
        spec: Spec,
        quantization: QuantizedAttributes,
        indices_array: NDArray[Any],
        shape: Shape,
    ) -> NDArray[Any]:
        """Return the dequantized slices at some indices along the axis of a spec."""
        if not is_index(indices_array.dtype):
            raise errors.not_an_index_dtype(GATHER, indices_array.dtype, False)
        rows = quantized.resolve_rows(
            indices_array, spec.axis, spec.rows, quantization.mode, quantization.negative
        )
        taken, block_numbers, row_numbers = quantized.parts_of(spec, rows)
        scales, *zeros = self.beside
        codes = _unpacked(self, spec, taken)
        factors = scales.taken(block_numbers, spec.axis)
        points = _unpacked(zeros[0], spec, block_numbers) if zeros else None
        result: NDArray[Any] = np.empty(shape, self.dtype)
        part = spec.of_rows(taken.size)
        if spec.divides_bytes:
            part = part._replace(codes=part.codes._replace(in_byte=1))
        quantized.dequantize(part, codes, row_numbers, factors, points, result)
        return result


class QuantizedTable(Table):
    """A table whose rows `gather` dequantizes. `open` with `scales` returns it.

    `shape` is the shape of the values, and `dtype` the dtype of the result. `nbytes` and `stats`
    count only the quantized values. `gather_nd` and `gather_elements` are not supported.
    """

    def __init__(
        self,
        table: Operand,
        cache: str | int,
        readers: int | None,
        direct: bool,
        storage_options: Mapping[str, Any] | None,
        decode: bool,
        follow: bool,
        scales: Operand,
        zero_points: Operand | None,
        options: Mapping[str, Any],
    ) -> None:
        """Open the table as `Table` does, and its scales and zero points in the same way."""
        anchors = [anchored("scales", scales)]
        if zero_points is not None:
            anchors.append(anchored("zero_points", zero_points))
        self._beside = [where for where, _ in anchors]
        self._original_beside = [operand for _, operand in anchors] + [None] * (2 - len(anchors))
        self._options = dict(options)
        super().__init__(table, cache, readers, direct, storage_options, decode, follow)

    def _new_state(self) -> State:
        try:
            return QuantizedState(self._where, self._beside, self._settings, self._options)
        except REFUSALS as error:
            raise _named(error, OPEN)  # noqa: B904  # the same error

    def gather(
        self,
        indices: Operand,
        axis: int = 0,
        *,
        mode: Any = "raise",
        negative: bool = True,
        fill_value: Any = 0,
        out: Any = None,
        device: Any = None,
        **unknown: Never,
    ) -> Any:
        """Take slices along `axis` and dequantize them, as `gatherum.gather_quantized` does.

        Parameters
        ----------
        indices : array
            As in `Table.gather`, but a path is not accepted.
        axis, mode, negative, out, device
            As in `Table.gather`.
        fill_value : int
            0: the result for invalid indices in the modes ``"fill"`` and ``"drop"``.

        Returns
        -------
        ndarray or tensor
            The result, or `out`.
        """
        options = {"mode": mode, "negative": negative, "fill_value": fill_value}
        return super().gather(indices, axis, **options, out=out, device=device, **unknown)

    def _gathered(
        self,
        state: State,
        begun: int,
        indices: Operand,
        attributes: dict[str, Any],
        fill_value: object,
        out: Any,
    ) -> Any:
        """Gather from a state of the table, and count the rows, the bytes and the time."""
        assert isinstance(state, QuantizedState)
        result, rows, nbytes = state.gathered(indices, attributes, fill_value, out)
        self._counts.add(rows, nbytes, perf_counter_ns() - begun)
        return result

    def gather_nd(self, *_: Any, **__: Any) -> NoReturn:
        """Raise NotImplementedError."""
        raise NotImplementedError("gather_nd: a quantized table has `gather` alone")

    def gather_elements(self, *_: Any, **__: Any) -> NoReturn:
        """Raise NotImplementedError."""
        raise NotImplementedError("gather_elements: a quantized table has `gather` alone")

    def write(self, *_: Any, **__: Any) -> NoReturn:
        """Raise NotImplementedError."""
        raise NotImplementedError(f"write: {self._where} cannot be written, it is quantized")

    def __reduce__(self) -> tuple[Callable[..., Table], tuple[Any, ...]]:
        """Pickle the arguments of `open`."""
        _, arguments = super().__reduce__()
        return QuantizedTable, (*arguments, *self._original_beside, self._options)


def _unpacked(part: State, spec: Spec, row_numbers: Ints) -> NDArray[Any]:
    """Return slices by number, with each value unpacked to a byte if a byte contains several."""
    if not spec.divides_bytes:
        return part.taken(row_numbers, spec.axis)
    in_byte, bits = spec.codes.in_byte, spec.codes.bits
    packed = part.taken(row_numbers // in_byte, spec.axis)
    shifts = (row_numbers % in_byte * bits).astype(np.uint8)
    return (packed.view(np.uint8) >> shifts).view(packed.dtype)


def _named(error: Exception, op: str) -> Exception:
    """Replace the name `gather_quantized` in an error with the name of the called function."""
    error.args = tuple(
        f"{op}{argument.removeprefix(NAME)}" if str(argument).startswith(f"{NAME}: ") else argument
        for argument in error.args
    )
    if isinstance(error, ImportError):
        error.msg = error.args[0]  # an ImportError prints it
    return error


def _block_size(codes: tuple[int, ...], scales: tuple[int, ...], axis: int, in_byte: int) -> int:
    """Return the number of values that share a scale, if the shapes determine it."""
    if not -len(codes) <= axis < len(codes) or len(scales) != len(codes):
        return 1  # the check of the shapes raises for it
    last = axis % len(codes) == len(codes) - 1
    size, count = codes[axis] * (in_byte if last else 1), scales[axis]
    block = ceil(size / max(count, 1))
    if count > 1 and size % count:
        raise ValueError(
            f"{OPEN}: `block_size` must be given where {count} scales do not divide {size} values"
        )
    return max(block, 1)
