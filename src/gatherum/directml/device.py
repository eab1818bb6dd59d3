"""Compile operator descs, and run them on flat byte buffers or on arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gatherum._arguments.array_likes import is_masked
from gatherum._functions.index_reports import IndexReport, index_report
from gatherum._model import shape_limits
from gatherum._model.errors import masked_array
from gatherum._plans.plans import apply, plan

from .buffers import array_operand, bytes_of, same_elements, strided_view, view_strides
from .check import check
from .desc_calls import lower_desc
from .descs import OperatorDesc
from .types import LATEST, FeatureLevel, LevelLike

if TYPE_CHECKING:
    from typing_extensions import Buffer  # collections.abc has it since Python 3.12


class Device:
    """Represent a DirectML device with the given feature level.

    Parameters
    ----------
    feature_level : FeatureLevel, str or int, optional
        The latest by default.

    Examples
    --------
    >>> from gatherum.directml import Device
    >>> Device("4_1")
    Device('4_1')
    """

    def __init__(self, feature_level: LevelLike = LATEST) -> None:
        self.feature_level = FeatureLevel.of(feature_level)

    def __repr__(self) -> str:
        return f"Device('{self.feature_level}')"

    def compile(self, desc: OperatorDesc) -> CompiledOperator:
        """Check an operator desc and plan its execution.

        Parameters
        ----------
        desc : operator desc
            One of the six, with its output tensor.

        Returns
        -------
        CompiledOperator

        Raises
        ------
        ValueError
            If the feature level does not accept it; the message lists every reason from `check`.
        """
        violations = check(desc, self.feature_level)
        if violations:
            reasons = "".join(f"\n- {violation}" for violation in violations)
            raise ValueError(
                f"{desc.operator}: feature level {self.feature_level} does not accept this desc:"
                f"{reasons}"
            )
        return CompiledOperator(desc, self.feature_level)


class CompiledOperator:
    """An accepted operator desc with its plan, as returned by `Device.compile`.

    It runs the same plan as the functions of `gatherum`. Reads at invalid indices are clamped
    into the dimension, and writes at invalid indices are dropped. If several writes address one
    element, the last in row-major order of the indices wins.

    Attributes
    ----------
    desc : operator desc
    feature_level : FeatureLevel
    """

    def __init__(self, desc: OperatorDesc, feature_level: FeatureLevel) -> None:
        self.desc = desc
        self.feature_level = feature_level
        self._lowered = lower_desc(desc, feature_level)
        self._tensors = desc.tensors
        operands = {name: self._planned(name) for name in self._tensors}
        self._plan = plan(
            self._lowered.operator.name,
            operands["InputTensor"],
            operands["IndicesTensor"],
            operands.get("UpdatesTensor"),
            out=operands["OutputTensor"],
            **self._lowered.attributes,
        )

    def __repr__(self) -> str:
        return f"<CompiledOperator {self.desc.operator} at feature level {self.feature_level}>"

    def dispatch(
        self,
        *,
        input_tensor: Buffer,
        indices_tensor: Buffer,
        output_tensor: Buffer,
        updates_tensor: Buffer | None = None,
    ) -> None:
        """Run the operator on flat buffers with the sizes and strides of its tensors.

        Parameters
        ----------
        input_tensor, indices_tensor, updates_tensor : buffer
            Any contiguous object with the buffer protocol (bytes, memoryview, ndarray, mmap),
            which may be read-only. Only scatters have ``updates_tensor``. Element 0 starts at the
            buffer's first byte.
        output_tensor : buffer
            Written with sizes and strides: bytes between elements do not change. For SCATTER
            and SCATTER_ND it may be exactly the input (the same elements).

        Raises
        ------
        TypeError
            If an operand is missing, superfluous, not a contiguous buffer, or has items with
            objects or pointers.
        ValueError
            If a buffer is too small, the output is read-only, or the output shares memory with
            an input.

        Notes
        -----
        The buffer's format determines whether items hold objects or pointers. ``ctypes`` exports
        unions, and structures with ``_pack_``, in the format of plain bytes: objects inside them
        are not detected, and copying their bytes would break their reference counts. Do not pass
        such arrays.

        Examples
        --------
        >>> import numpy as np
        >>> from gatherum.directml import BufferTensorDesc, Device, GatherOperatorDesc
        >>> data = BufferTensorDesc("FLOAT32", (4,))
        >>> indices = BufferTensorDesc("INT32", (3,))
        >>> spread = BufferTensorDesc("FLOAT32", (3,), strides=(2,))
        >>> compiled = Device().compile(GatherOperatorDesc(data, indices, spread, 0, 1))
        >>> out = np.zeros(6, "float32")
        >>> compiled.dispatch(
        ...     input_tensor=np.float32([11, 12, 13, 14]),
        ...     indices_tensor=np.int32([3, -3, 9]),
        ...     output_tensor=out,
        ... )
        >>> out
        array([14.,  0., 12.,  0., 14.,  0.], dtype=float32)
        """
        views = {
            "InputTensor": self._view("InputTensor", input_tensor),
            "IndicesTensor": self._view("IndicesTensor", indices_tensor),
        }
        if self._takes_updates(updates_tensor):
            views["UpdatesTensor"] = self._view("UpdatesTensor", updates_tensor)
        out = self._view("OutputTensor", output_tensor)
        operator = self.desc.operator
        if not out.flags.writeable:
            raise ValueError(f"{operator}: `OutputTensor` must be writable, got a read-only buffer")
        if operator.startswith("SCATTER") and same_elements(views["InputTensor"], out):
            views["InputTensor"] = out
        for name, view in views.items():
            if view is not out and shape_limits.shares_memory(view, out):
                exception = " other than exactly its own" if name == "InputTensor" else ""
                where = exception if operator.startswith("SCATTER") else ""
                raise ValueError(
                    f"{operator}: `OutputTensor` must share no memory with `{name}`{where}"
                )
        self._plan.run(
            views["InputTensor"], views["IndicesTensor"], views.get("UpdatesTensor"), out=out
        )

    def __call__(
        self,
        input: npt.ArrayLike,
        indices: npt.ArrayLike,
        updates: npt.ArrayLike | None = None,
    ) -> npt.NDArray[Any]:
        """Run the operator on arrays.

        Parameters
        ----------
        input, indices, updates : array_like
            With the Sizes and DataType of their tensors, and any strides; ``updates`` for
            scatters only. Lists of numbers are converted to the tensor's type.

        Returns
        -------
        ndarray
            A new packed array with the Sizes of OutputTensor.

        Raises
        ------
        TypeError
            If a dtype is not the tensor's, or updates are missing or superfluous.
        ValueError
            If a shape is not the tensor's.

        Examples
        --------
        >>> from gatherum.directml import BufferTensorDesc, Device, GatherOperatorDesc
        >>> data, indices = BufferTensorDesc("FLOAT32", (4,)), BufferTensorDesc("UINT32", (5,))
        >>> desc = GatherOperatorDesc(data, indices, None, 0, 1).with_inferred_output()
        >>> Device().compile(desc)([11, 12, 13, 14], [3, 1, 3, 0, 2])
        array([14., 12., 14., 11., 13.], dtype=float32)
        """
        values = {"InputTensor": input, "IndicesTensor": indices}
        if self._takes_updates(updates) and updates is not None:
            values["UpdatesTensor"] = updates
        arrays = {name: self._cropped(name, value) for name, value in values.items()}
        result = apply(
            self._lowered.operator.name,
            arrays["InputTensor"],
            arrays["IndicesTensor"],
            arrays.get("UpdatesTensor"),
            **self._lowered.attributes,
        )
        return result.reshape(self._tensors["OutputTensor"].sizes)

    def index_report(self, indices_tensor: Buffer) -> IndexReport:
        """Report invalid and duplicate entries of index data.

        Parameters
        ----------
        indices_tensor : buffer
            As for `dispatch`.

        Returns
        -------
        IndexReport
            How many entries (for the ND operators, tuples) there are, how many of them are invalid
            and how many are duplicates, and the first invalid and the first duplicate entry. A
            position has one coordinate for each meaningful dimension of the indices.
        """
        lowered, sizes = self._lowered, self._tensors["InputTensor"].sizes
        attributes = {k: v for k, v in lowered.attributes.items() if k != "mode"}
        rank = lowered.ranks["InputTensor"]
        indices = self._view("IndicesTensor", indices_tensor)
        op = lowered.operator.name
        return index_report(op, sizes[len(sizes) - rank :], indices, **attributes)

    def _takes_updates(self, updates: object) -> bool:
        """Return True if the operator has updates. Raise TypeError if they are missing or extra."""
        takes_updates = "UpdatesTensor" in self._tensors
        if takes_updates != (updates is not None):
            reason = "is missing" if takes_updates else "must be absent: the operator has none"
            raise TypeError(f"{self.desc.operator}: `UpdatesTensor` {reason}")
        return takes_updates

    def _planned(self, name: str) -> tuple[tuple[int, ...], np.dtype[Any], tuple[int, ...]]:
        tensor, rank = self._tensors[name], self._lowered.ranks[name]
        padding = tensor.dimension_count - rank
        return tensor.sizes[padding:], tensor.data_type.dtype, view_strides(tensor, rank)

    def _view(self, name: str, buffer: object) -> npt.NDArray[Any]:
        tensor, operator = self._tensors[name], self.desc.operator
        if is_masked(buffer):
            raise masked_array(operator, name)
        flat = bytes_of(buffer, tensor, f"{operator}: `{name}`")
        return strided_view(tensor, self._lowered.ranks[name], flat)

    def _cropped(self, name: str, value: npt.ArrayLike) -> npt.NDArray[Any]:
        tensor = self._tensors[name]
        array = array_operand(self.desc.operator, name, value, tensor)
        leading = tensor.dimension_count - self._lowered.ranks[name]
        cropped: npt.NDArray[Any] = array[(0,) * leading + (...,)]
        return cropped
