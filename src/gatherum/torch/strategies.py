"""The strategies of a call on tensors, and the reason why the core declines one.

===== ========================================================================================
eager The core runs the call on the tensors' memory (`core/python/torch`), and autograd records it
      if a gradient is needed (`autograd.recording`).
op    torch's dispatcher runs the call, by the custom ops of `library.ops`.
meta  A fake kernel of the same ops computes the shape (`tracing.fakes`).
===== ========================================================================================

A call with `out`, or with a fill value other than the integer 0, also has the strategy "op". The
reasons are in ``kDeclined`` of ``core/python/torch/tensor_routes.cpp``, with fields for the
operand.
"""

from __future__ import annotations

from torch import Tensor

from gatherum._model.call import is_spec
from gatherum._system import native


def strategy(data: object, indices: object, updates: object) -> str:
    """Return the strategy of a call in one line, with the reason if the core declines it.

    Return "" if an operand is a spec (a shape and a dtype without values).
    """
    operands = {"data": data, "indices": indices, "updates": updates}
    if any(map(is_spec, operands.values())):
        return ""
    if any(isinstance(value, Tensor) and value.is_meta for value in operands.values()):
        return "meta: an operand has no values"
    reason, operand, recorded = native.tensor_route(data, indices, updates)
    if not reason:
        return "eager, recorded by autograd" if recorded else "eager"
    name, value = list(operands.items())[operand]
    return "op: " + reason.format(name=name, type=type(value).__name__)
