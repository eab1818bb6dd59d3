"""The shared parts of the adapters that run calls prepared by `gatherum.prepare`."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._model import errors
from gatherum._model.call import ArraySpec, Attributes
from gatherum._model.dtypes import AnyDType
from gatherum._model.errors import Shape
from gatherum._plans.sharing import Shared


def check_data(op: str, like: ArraySpec, shape: Shape, dtype: AnyDType) -> None:
    """Raise unless data have the shape and dtype that a call was prepared for."""
    if shape != like.shape:
        raise errors.other_prepared_shape(op, like.shape, shape)
    if dtype != like.dtype:
        raise errors.other_prepared_dtype(op, like.dtype, dtype)


def run_as_call(
    call: Callable[..., Any], attributes: Attributes, like: ArraySpec, indices: NDArray[Any]
) -> Callable[..., Any]:
    """Return a function that runs a prepared call through the method `call` of an adapter."""

    def run(data: Any, updates: object, out: object, fill_value: object) -> Any:
        check_data(attributes.op, like, tuple(data.shape), data.dtype)
        return call(attributes, data, indices, updates, fill_value, out)

    return run


class PreparedOnDevices:
    """A prepared call on the arrays of a framework whose arrays may be on devices.

    Attributes
    ----------
    attributes : Attributes
        The attributes of the call. The indices are already checked, and not negative.
    unchecked : Attributes
        Attributes for the same call without a check of the indices, so that the call does not wait.
    like : ArraySpec
        The shape and dtype of the data.
    indices : numpy.ndarray
        The indices, in host memory.
    on_arrays : callable
        The function that runs the call on NumPy arrays.
    """

    def __init__(
        self,
        attributes: Attributes,
        like: ArraySpec,
        indices: NDArray[Any],
        on_arrays: Callable[..., Any],
    ) -> None:
        self.attributes, self.like, self.on_arrays = attributes, like, on_arrays
        self.indices = np.asarray(indices, order="C")  # also without dimensions
        raises = attributes.mode == "raise"
        self.unchecked = attributes._replace(mode="drop") if raises else attributes
        self._copies: dict[Hashable, tuple[Any, Shared]] = {}

    def indices_at(
        self, place: Hashable, copy: Callable[[], tuple[Any, int]]
    ) -> tuple[Any, Shared]:
        """Return the indices at a place, such as a device, and the results that calls share there.

        The first call at a place copies them there: `copy` returns the copy and its address.
        """
        if place not in self._copies:
            array, address = copy()
            self._copies[place] = array, Shared(address=address)
        return self._copies[place]
