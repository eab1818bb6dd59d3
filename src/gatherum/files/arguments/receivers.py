"""The `out` argument of a call: an array, or a tensor in CPU memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments import array_likes, conversion
from gatherum._arguments.checks import check_out_spec
from gatherum._frameworks import registry
from gatherum._model import errors
from gatherum._model.call import ArraySpec
from gatherum._model.errors import Shape
from gatherum._plans.overlap import check_out_memory
from gatherum.files.formats.dtypes import name_of

from .tensors import bytes_of


class Receiver:
    """The memory of a result, checked like the `out` of the operators in memory."""

    def __init__(self, op: str, out: Any, shape: Shape, dtype: np.dtype[Any]) -> None:
        self.op = op
        outcome = registry.spec(op, "out", out)
        if isinstance(outcome, ArraySpec):
            spec = outcome
            if str(outcome.dtype) == name_of(dtype):  # NumPy lacks it or has another name for it
                spec = ArraySpec(outcome.shape, dtype, outcome.strides)
            check_out_spec(op, shape, dtype, spec)
            if (tensor_bytes := bytes_of(out)) is None:
                raise errors.out_not_a_numpy_array(op, out)
            self.array = tensor_bytes.view(dtype).reshape(shape)
            return
        self.array = conversion.as_plain_out(op, outcome, shape, dtype)
        if getattr(out, "requires_grad", False):
            raise ValueError(f"{op}: `out` must not require a gradient; write out.detach()")

    def check_apart(self, *operands: object) -> None:
        """Raise ValueError if the memory is read-only or overlaps an operand."""
        arrays: list[Any] = [getattr(where, "array", None) for where in operands]
        data, indices = (x if array_likes.is_plain(x) else NOTHING for x in arrays)
        check_out_memory(self.op, data, indices, None, self.array)


NOTHING: NDArray[np.uint8] = np.empty(0, np.uint8)
