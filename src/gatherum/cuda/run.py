"""From a plan to the launches that run it."""

from __future__ import annotations

from ..plan import Plan
from .device import Device


def run(
    device: Device,
    plan: Plan,
    data: int,
    indices: int,
    updates: int,
    out: int,
    fill: bytes = b"",
) -> None:
    """Run a plan on a device's memory, or raise IndexError for an invalid index.

    Parameters
    ----------
    device : Device
        Whose stream everything goes to.
    plan : Plan
        What `gatherum.plan` made of the operands' shapes, dtypes and strides.
    data, indices, updates, out : int
        Addresses of the operands' first elements; `updates` is not looked at in a gather. `out` is
        laid out as the plan's ``out``, or in C order where the plan has none. A scatter whose `out`
        is `data`, in the same layout, works in place.
    fill : bytes
        The item that a gather stores for an invalid index in modes "fill" and "drop"; empty for
        zeros.

    Raises
    ------
    IndexError
        In mode "raise", which waits for the stream; what `out` then holds is as the operator says.
    """
    raise NotImplementedError


def scratch(plan: Plan) -> int:
    """Return the bytes of working memory that a plan takes on a device, at most."""
    raise NotImplementedError
