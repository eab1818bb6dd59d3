"""The error messages that several packages share.

`calls` contains the messages about arguments, dtypes, `out` and indices, `shapes` those about ranks
and sizes, `package_objects` those about accumulators, prepared calls and pictures, `edges` those
about graph edges, and `frameworks` those about arrays of other frameworks. `audience` chooses the
advice for users of NumPy, of PyTorch or of the command line, and `texts` formats values.

A message used only by one framework, by `groups`, by `files`, by `files/grouped` or by `quantized`
is in the `errors.py` of its folder. Messages about the contents of a file are written where they
are raised, and so are all messages of `onnx`, `directml` and `cli`.

In a message of an operator, the words `data`, `indices` and `updates` refer to the operands, except
between quotes: `_model/callers.py: renamed` replaces them by the names of the function that the
user called.
"""

from .audience import for_tensors as for_tensors
from .calls import *  # noqa: F403  # every message of a call
from .package_objects import *  # noqa: F403
from .shapes import *  # noqa: F403
from .texts import Shape as Shape
