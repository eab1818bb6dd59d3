"""Arrays of other frameworks, known by where their types come from; nothing is imported for that.

A framework's room registers here, and calls whose data are its arrays go to the room. Without one
they are refused: NumPy would read a lazy array whole, copy from a device, or lose the framework.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from . import errors

# Takes the arguments of the core's `call`, and returns an array of its framework.
Room: TypeAlias = Callable[..., object]
# Takes the operator, the operand's name and an array; returns a NumPy array of the same memory, or
# (shape, dtype, strides), where the values cannot be seen.
Look: TypeAlias = Callable[[str, str, object], object]

# Takes the arguments of `plan`, the attributes as a dict; says in a line how the call would run.
Tell: TypeAlias = Callable[..., str]


class Framework(NamedTuple):
    """A framework: what to write for a NumPy array with the values of one of its arrays, and what
    makes one array of several.
    """

    name: str
    instead: str
    stack: str = "np.stack"


_WHOLE = "write {}[...] to read all of it"
_FRAMEWORKS = (
    Framework("torch", "write {}.numpy(force=True)", "torch.stack"),
    Framework("jax", "write np.asarray({})", "jnp.stack"),
    Framework("tensorflow", "write {}.numpy()", "tf.stack"),
    Framework("cupy", "write cupy.asnumpy({})", "cupy.stack"),
    Framework("dask", "write {}.compute()", "dask.array.stack"),
    Framework("zarr", f"{_WHOLE}, or give it to gatherum.files"),
    Framework("h5py", f"{_WHOLE}, or give it to gatherum.files"),
    Framework(
        "netCDF4",
        "write np.ma.filled({}[...], value), since its mask would be lost",
        "np.ma.stack",
    ),
    Framework("tensorstore", "write {}.read().result() to read all of it"),
)
_BY_MODULE = {framework.name: framework for framework in _FRAMEWORKS}
_BY_MODULE["jaxlib"] = _BY_MODULE["jax"]
# Arrays on a CUDA device of any other framework, known by the protocols that their types have.
CUDA = Framework("cuda", "copy it to the host first", "its framework's stack")
# Tuples of a framework that stand for one array, and what to write for its values.
_TUPLES = {"torch.nn.utils.rnn.PackedSequence": "write {}.data for its values"}
# Arrays and values of NumPy and of Python, whatever module has made a type of its own of them.
_OURS = (np.ndarray, np.generic, list, tuple, str, bytes, int, float, complex)
# Types that are no framework's, without a look at where they come from.
COMMON = frozenset((*_OURS, bool, type(None)))

_rooms: dict[str, Room] = {}
_looks: dict[str, Look] = {}
_tells: dict[str, Tell] = {}
_on_cuda: dict[str, Callable[[object], bool]] = {}
# Frameworks with a room in this package, and the name of its module.
_OWN_ROOMS = {"dask": "dask", "jax": "jax", "torch": "torch", "cupy": "cuda", "cuda": "cuda"}


def register(
    framework: str,
    room: Room,
    look: Look | None = None,
    tell: Tell | None = None,
    on_cuda: Callable[[object], bool] | None = None,
) -> None:
    """Send calls whose data are arrays of a framework to its room.

    Plans see its arrays by `look`, `explain` asks `tell` how a call on them runs, and `on_cuda`
    says which of them are on a CUDA device.
    """
    name = framework if framework == CUDA.name else _BY_MODULE[framework].name
    _rooms[name] = room
    if look is not None:
        _looks[name] = look
    if tell is not None:
        _tells[name] = tell
    if on_cuda is not None:
        _on_cuda[name] = on_cuda


class Foreign(NamedTuple):
    """What a value is an array of: the framework, and the name of its type there."""

    framework: Framework
    name: str


def foreign(kind: type) -> Foreign | None:
    """Return what arrays of a type are in another framework, None for any other type."""
    if kind in COMMON:
        return None
    if (found := _met.get(kind)) is None and not issubclass(kind, _OURS):
        for base in kind.__mro__:
            root = str(base.__module__).partition(".")[0]
            if framework := _BY_MODULE.get(root):
                found = Foreign(framework, f"{framework.name}.{base.__name__}")
                break
        if found is None and _may_be_on_cuda(kind):
            root = str(kind.__module__).partition(".")[0]
            found = Foreign(CUDA, f"{root}.{kind.__name__}")
        if found is not None and len(_met) < _MET_MOST:
            _met[kind] = found
    return found


def _may_be_on_cuda(kind: type) -> bool:
    """Whether values of a type may be arrays on a CUDA device: they say so by its protocol, or by
    DLPack's and NumPy cannot read them.
    """
    if hasattr(kind, "__cuda_array_interface__"):
        return True
    return hasattr(kind, "__dlpack_device__") and not hasattr(kind, "__array__")


# Types that were met, so that their next array costs a look-up; they are kept alive, so not many.
_met: dict[type, Foreign] = {}
_MET_MOST = 64


def refuse(op: str, operand: str, value: object) -> None:
    """Raise TypeError for an array of another framework, and for an object whose values are not in
    memory, and say what to write instead.
    """
    kind = type(value)
    if found := foreign(kind):
        is_array = found.framework is CUDA or hasattr(kind, "__array__")
        instead = found.framework.instead.format(operand) if is_array else ""
        raise errors.foreign_array(op, operand, found.name, instead)
    if not issubclass(kind, _OURS) and (reading := _reading(value)):
        root = str(kind.__module__).partition(".")[0]
        name = f"{root}.{kind.__name__}"
        raise errors.foreign_array(op, operand, name, reading.format(operand))


def refuse_held(op: str, operand: str, value: Iterable[object], held: type) -> None:
    """Raise TypeError for an array of another framework in a list or a tuple."""
    if found := foreign(held):
        kind, flat = type(value), all(foreign(type(item)) for item in value)
        stacked = f"write {found.framework.stack}({{}})" if flat else "make one array of them"
        instead = (whole_tuple(kind) or stacked).format(operand)
        raise errors.held_array(op, operand, kind.__name__, found.name, instead)


def whole_tuple(kind: type) -> str:
    """Return what to write for a tuple that stands for one array, "" for any other type."""
    return _TUPLES.get(f"{kind.__module__}.{kind.__name__}", "")


def is_masked_tensor(kind: type) -> bool:
    """Whether a type is that of PyTorch's tensors with a mask."""
    return kind.__name__ == "MaskedTensor" and kind.__module__.startswith("torch.masked")


def _reading(value: object) -> str | None:
    """Return what to write for an object that NumPy would read whole or take from its framework,
    None where its values are in memory.
    """
    kind = type(value)
    if "xarray" in _roots(kind):
        held = _held_by_xarray(value)
        if "xarray" in _roots(type(held)):
            return "write {}.values to read all of it"
        elsewhere = foreign(type(held)) or _reading(held)
        return "write {}.data, the array that it holds" if elsewhere else None
    graph = getattr(value, "__dask_graph__", None)  # Dask's protocol for what holds its arrays
    if callable(graph) and graph() is not None:
        return "write {}.compute() to read all of it"
    # Of the type alone: the columns of a table are attributes, too.
    chunks = getattr(value, "chunks", None) if hasattr(kind, "chunks") else None
    stored = isinstance(chunks, tuple) or hasattr(kind, "chunk_layout")
    return _WHOLE if stored else None


def _held_by_xarray(value: object) -> object:
    """Return the array inside an object of xarray, or xarray's reader of what is in a file."""
    held: Any = getattr(getattr(value, "variable", value), "_data", None)
    while "xarray" in _roots(type(held)) and hasattr(held, "array"):
        held = held.array
    return held


def _roots(kind: type) -> set[str]:
    """Return the packages that a type and its bases come from."""
    return {str(base.__module__).partition(".")[0] for base in kind.__mro__}


def check_one_framework(op: str, operands: Mapping[str, object]) -> None:
    """Raise TypeError where two operands are arrays of different frameworks."""
    first: tuple[str, Foreign] | None = None
    met: type | None = None
    for operand, value in operands.items():
        kind = type(value)
        if kind in COMMON or kind is met or (found := foreign(kind)) is None:
            continue
        met = kind
        if first is None:
            first = operand, found
        elif found.framework != first[1].framework:
            raise errors.two_frameworks(op, first[0], first[1].name, operand, found.name)


def room_for(data: type) -> Room | None:
    """Return the room that calls on data of a type go to.

    Frameworks that are loaded get their room here, at the first of their arrays. It registers
    itself.
    """
    if (found := foreign(data)) is None:
        return None
    name = found.framework.name
    loaded = name in sys.modules or name == CUDA.name
    if name not in _rooms and name in _OWN_ROOMS and loaded:
        import_module(f"{__package__}.{_OWN_ROOMS[name]}")
    return _rooms.get(name)


def seen(op: str, operand: str, value: object) -> object:
    """Return what a plan sees of a value: of an array of a framework that has a room here, a NumPy
    array or a description; anything else as it is.
    """
    if (found := foreign(type(value))) is None or room_for(type(value)) is None:
        return value
    look = _looks.get(found.framework.name)
    return value if look is None else look(op, operand, value)


def told(op: str, data: object, *call: object) -> str:
    """Return what the room for the data of a call tells of it, nothing where it is NumPy's."""
    if (found := foreign(type(data))) is None or room_for(type(data)) is None:
        return ""
    tell = _tells.get(found.framework.name)
    return "" if tell is None else tell(op, data, *call)


def is_on_cuda(value: object) -> bool:
    """Whether a value is an array on a CUDA device."""
    if (found := foreign(type(value))) is None or room_for(type(value)) is None:
        return False
    asked = _on_cuda.get(found.framework.name)
    return asked is not None and asked(value)


def lacks_values(value: object) -> bool:
    """Whether an object other than a NumPy array has a mask, or values that are missing."""
    if is_masked_tensor(type(value)):
        return True
    roots = _roots(type(value))
    if roots & {"polars", "pyarrow"}:
        count = getattr(value, "null_count", 0)
        count = count() if callable(count) else count
        return isinstance(count, int) and count > 0
    # A dtype of pandas's own; missing values of NumPy's are NaN or NaT there, and stay so.
    if "pandas" in roots and not isinstance(getattr(value, "dtype", None), (np.dtype, type(None))):
        return bool(value.isna().any())  # type: ignore[attr-defined]  # so have all of these
    interface = getattr(value, "__array_interface__", None)
    return isinstance(interface, dict) and interface.get("mask") is not None
