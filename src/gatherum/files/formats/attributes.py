"""Read the attributes of packed numbers, as netCDF and xarray write them."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from gatherum._model.errors.audience import option
from gatherum.files.formats.packing import ATTRIBUTES, Attributes
from gatherum.files.row_access.dimension_names import DAMAGED

FILL, XARRAY = "_FillValue", "_ARRAY_DIMENSIONS"


def attributes_of_hdf5(name: object, dataset: Any) -> Attributes:
    """Return a function that reads the attributes of a dataset, or raises ValueError."""
    return lambda: dict(_of_hdf5(name, dataset))


def _of_hdf5(name: object, dataset: Any) -> Iterator[tuple[str, Any]]:
    for key in ATTRIBUTES:
        try:
            if key not in dataset.attrs:
                continue
            value = dataset.attrs[key]
        except DAMAGED as error:
            raise ValueError(
                f"{name}: its attribute {key!r} cannot be read ({error}); "
                f"{option('decode=False')} takes the stored numbers"
            ) from None
        if isinstance(value, np.ndarray) and value.size == 1:  # netCDF writes one number so
            value = value.reshape(-1)[0]
        yield key, value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def attributes_of_zarr(array: Any) -> Attributes:
    """Return a function that reads the attributes of an array."""
    return partial(_of_zarr, array)


def _of_zarr(array: Any) -> Mapping[str, Any]:
    """Return an array's attributes.

    In format 2, xarray stores `_FillValue` as the fill value of its arrays, which have dimension
    names. In format 3, `_FillValue` is an attribute; floats are encoded in base64.
    """
    packed = {key: value for key, value in dict(array.attrs).items() if key in ATTRIBUTES}
    if array.metadata.zarr_format == 2:
        if XARRAY in array.attrs and array.metadata.fill_value is not None:
            packed[FILL] = array.metadata.fill_value
    elif isinstance(packed.get(FILL), str):
        with suppress(ValueError, struct.error):  # any other text raises an error later
            (packed[FILL],) = struct.unpack("<d", base64.b64decode(packed[FILL], validate=True))
    return packed
