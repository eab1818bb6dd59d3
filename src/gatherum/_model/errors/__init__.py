"""The error messages about calls (`calls`, `shapes`) and about this package's objects.

`edges` contains the messages about graph edges, and `frameworks` those about arrays of other
frameworks. `audience` chooses the advice for users of NumPy, of PyTorch or of the command line.
Messages that only one framework, `groups` or `quantized` needs are in the `errors.py` of its
folder. `files`, `onnx`, `directml` and `cli` write their messages where they raise them.
"""

from .audience import for_tensors as for_tensors
from .calls import *  # noqa: F403  # every message of a call
from .package_objects import *  # noqa: F403
from .shapes import *  # noqa: F403
from .texts import Shape as Shape
