"""Define the operators as ``torch.ops.gatherum``, with kernels for CPU and CUDA.

Each operator has a functional form and a writing form: `name_out` writes to a separate tensor and,
for scatters, `name_` writes to the data. The argument `mode` is named `bounds` here, because
functionalization reserves the name `mode`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import signature
from typing import Any, TypeAlias

import torch
from torch import Tensor

from gatherum._model.call import OPERAND_NAMES, Attributes
from gatherum._model.operators import OPERATORS, Operator
from gatherum._system import native
from gatherum.torch import checks, dlpack, private
from gatherum.torch import errors as torch_errors

from . import inductor

Kernel: TypeAlias = Callable[..., Any]

# The attributes in schemas, after the tensors.
_GATHERS = "int {}=0, str bounds='raise', bool negative=True, Scalar fill_value=0"
_SCATTERS = (
    "int {}=0, str reduction='none', bool include_self=True, str bounds='raise', bool negative=True"
)
# A `callers.Caller` as a string, for errors.
CALLER = "str caller=''"
# The same without defaults, for ops that only this package calls.
SCATTER_ATTRIBUTES = re.sub("=[^,]*", "", _SCATTERS.format("axis"))


def _new_library() -> torch.library.Library:
    """Return the library of the ops. It replaces the library of an earlier import."""
    namespace = vars(torch.ops.gatherum)
    if (earlier := namespace.get("_library")) is not None:
        private.destroy(earlier)
    namespace["_library"] = library = torch.library.Library("gatherum", "DEF")
    return library


LIBRARY = _new_library()


def _define(operator: Operator) -> None:
    name, operands = operator.name, "{} data, Tensor indices"
    attributes = (_SCATTERS if operator.scatters else _GATHERS).format(operator.attribute)
    attributes += f", {CALLER}"
    if operator.scatters:
        operands += ", Tensor updates"
        _define_one(f"{name}_", f"({operands.format('Tensor(a!)')}, {attributes}) -> ()")
    operands = operands.format("Tensor")
    _define_one(name, f"({operands}, {attributes}) -> Tensor")
    _define_one(f"{name}_out", f"({operands}, Tensor(a!) out, {attributes}) -> ()")


def _define_one(name: str, schema: str) -> None:
    for op_name in with_below(name):
        LIBRARY.define(op_name + schema, tags=_TAGS)


def with_below(name: str) -> tuple[str, ...]:
    """Return the op name and, if torch cannot redispatch, the name of a second op.

    The second op has the same kernels except the Autograd kernel.
    """
    return (name,) if private.redispatches else (name, f"{name}_below")


def below(op: Any) -> Any:
    """Return the op without an Autograd kernel."""
    return overload(f"{name_of(op)}_below")


def name_of(op: Any) -> str:
    """Return the name of an op."""
    name: str = op.name().partition("::")[2]
    return name


# Mode "raise", the default, waits for the device, which CUDA graphs do not support. So the tag
# excludes the ops from inductor's graphs (mode="reduce-overhead").
_TAGS = (torch.Tag.pt2_compliant_tag, torch.Tag.cudagraph_unsafe)


# The parameters of every kernel follow the order of its schema.


def gather_attributes(
    op: str,
    axis: int = 0,
    bounds: str = "raise",
    negative: bool = True,
    fill_value: Any = 0,
    caller: str = "",
) -> Attributes:
    """Return the attributes of a gather from an op's arguments. The last ones may be omitted."""
    return Attributes(op, axis, mode=bounds, negative=negative, caller=caller)


def scatter_attributes(
    op: str,
    axis: int = 0,
    reduction: str = "none",
    include_self: bool = True,
    bounds: str = "raise",
    negative: bool = True,
    caller: str = "",
) -> Attributes:
    """Return the attributes of a scatter from an op's arguments. The last ones may be omitted."""
    return Attributes(op, axis, reduction, include_self, bounds, negative, caller=caller)


def fill_of(arguments: tuple[Any, ...]) -> Any:
    """Return the fill value from the arguments that follow a gather's tensors."""
    return arguments[3] if len(arguments) > 3 else 0


def kernels(operator: Operator, run: Kernel) -> dict[str, Kernel]:
    """Return the kernels of all forms of an operator, made from one function.

    The function's parameters are attributes, data, indices, updates, the fill value and `out`.
    """
    op = operator.name
    if not operator.scatters:

        def gather(data: Tensor, indices: Tensor, *arguments: Any) -> Tensor:
            return run(
                gather_attributes(op, *arguments), data, indices, None, fill_of(arguments), None
            )

        def gather_out(data: Tensor, indices: Tensor, out: Tensor, *arguments: Any) -> None:
            run(gather_attributes(op, *arguments), data, indices, None, fill_of(arguments), out)

        return {op: gather, f"{op}_out": gather_out}

    def scatter(data: Tensor, indices: Tensor, updates: Tensor, *arguments: Any) -> Tensor:
        return run(scatter_attributes(op, *arguments), data, indices, updates, 0, None)

    def scatter_(data: Tensor, indices: Tensor, updates: Tensor, *arguments: Any) -> None:
        run(scatter_attributes(op, *arguments), data, indices, updates, 0, data)

    def scatter_out(
        data: Tensor, indices: Tensor, updates: Tensor, out: Tensor, *arguments: Any
    ) -> None:
        run(scatter_attributes(op, *arguments), data, indices, updates, 0, out)

    return {op: scatter, f"{op}_": scatter_, f"{op}_out": scatter_out}


def _on_cuda(*call: Any) -> Tensor:
    """Run one call on CUDA tensors. The first call imports `gatherum.cuda`."""
    from gatherum.torch import cuda

    return cuda.run(*call)


def _program_on_cuda(*call: Any) -> Any:
    """Return the program of a call for replays in the core."""
    from gatherum.cuda import replays

    return replays.make_program(*call)


def _sorter_on_cuda(*call: Any) -> Any:
    """Return the sort for one replay in the core."""
    from gatherum.torch import cuda

    return cuda.sorter(*call)


def _zeros_on_cuda(device: int) -> int:
    """Return the address of zeros for scatters in the core, or 0."""
    from gatherum.torch import cuda

    return cuda.zeros_address(device)


def _refuse_device(op: str) -> Kernel:
    """Return the kernel for unsupported backends. It raises an error that names the device."""

    def kernel(data: Tensor, *others: Any) -> Any:
        for name, tensor in zip(OPERAND_NAMES, (data, *others), strict=False):
            if isinstance(tensor, Tensor):
                checks.check_dense(op, name, tensor, data.device)
        raise torch_errors.no_device(op, str(data.device))

    return kernel


def forms(operator: Operator) -> tuple[str, ...]:
    """Return the names of an operator's forms, the functional form first."""
    in_place = (f"{operator.name}_",) if operator.scatters else ()
    return (operator.name, f"{operator.name}_out", *in_place)


def operand_names(operator: Operator, name: str) -> tuple[str, ...]:
    """Return the tensor argument names of an op."""
    *operands, out = OPERAND_NAMES if operator.scatters else (*OPERAND_NAMES[:2], OPERAND_NAMES[3])
    return (*operands, out) if name.endswith("_out") else tuple(operands)


def overload(name: str) -> Any:
    """Return the op with the given name."""
    return getattr(torch.ops.gatherum, name).default


for _operator in OPERATORS.values():
    _define(_operator)
    for _name, _kernel in kernels(_operator, dlpack.run).items():
        for _each in with_below(_name):
            LIBRARY.impl(_each, _kernel, "CPU")
            for _key in ("CompositeExplicitAutograd", "NestedTensorCPU", "NestedTensorCUDA"):
                LIBRARY.impl(_each, _refuse_device(_operator.name), _key)
    for _name, _kernel in kernels(_operator, _on_cuda).items():
        for _each in with_below(_name):
            LIBRARY.impl(_each, _kernel, "CUDA")
    _attributes = signature(scatter_attributes if _operator.scatters else gather_attributes)
    _defaults = {name: parameter.default for name, parameter in _attributes.parameters.items()}
    del _defaults["op"]
    _names = dict.fromkeys(operand_names(_operator, _operator.name))
    inductor.add_entry_point(overload(_operator.name), _operator, _names | _defaults)
if torch.version.hip is None:  # on ROCm, the devices named "cuda" are AMD's
    native.set_torch_cuda(_program_on_cuda, _sorter_on_cuda, _zeros_on_cuda)
