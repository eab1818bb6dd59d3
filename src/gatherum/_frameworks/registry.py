"""Select a framework's adapter by the module that defines an array's type.

An adapter is imported when an array of its framework is first passed to a call. A call whose `data`
is an array of a framework is passed to the framework's adapter. Without an adapter, the array
raises an error (see `refusals`). Adapters are part of this package, registered by `register`, or
found in installed packages by an entry point of the group ``gatherum.frameworks`` with the name of
the framework's module.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import numpy as np

from gatherum._model.call import ArraySpec, Attributes
from gatherum._model.errors import frameworks as framework_errors


class Framework(Protocol):
    """The adapter of a framework, which runs calls on the framework's arrays.

    `aggregate`, `prepared`, `quantized` and `accumulator` have arguments of private types, so they
    are for adapters inside this package.

    Attributes
    ----------
    name : str
        The framework's name in messages.
    modules : tuple of str
        The top-level modules that define the framework's types.
    to_numpy : str
        Advice to convert an array to NumPy, for example ``"write {}.numpy()"``.
    groups : object
        The functions that `gatherum.groups.protocol.Arrays` lists. None if arrays must be converted
        for `gatherum.groups`. Optional.
    aggregate : callable
        Runs `gatherum.aggregate`. Takes the data, both indices, an
        `edge_reductions.AggregateOptions`, the weights and `out`. Optional, may be None.
    prepared : callable
        Creates the function that runs a call prepared by `gatherum.prepare`. Takes the attributes,
        the spec of the data, the indices, and the function that runs the call on NumPy arrays.
        Returns a function of data, updates, `out` and `fill_value`. Optional, may be None.
    quantized : callable
        Runs `gatherum.gather_quantized` on `_functions.quantized.spec.QuantizedAttributes` and the
        operands. Optional, may be None.
    accumulator : callable
        Returns the subclass of `gatherum.Accumulator` for the given data, or None if there is none.
        Optional, may be None.
    """

    name: str
    modules: tuple[str, ...]
    to_numpy: str
    groups: Any = None
    aggregate: Any = None
    prepared: Any = None
    quantized: Any = None
    accumulator: Any = None

    @abstractmethod
    def owns(self, array_type: type) -> bool:
        """Return True if `call` accepts arrays of a type."""
        ...

    @abstractmethod
    def call(
        self,
        attributes: Attributes,
        data: Any,
        indices: Any,
        updates: Any,
        fill_value: object,
        out: object,
    ) -> object:
        """Run a call and return an array of the framework.

        `data` is an array of the framework. `indices` and `updates` are also arrays of the
        framework, or values that NumPy accepts. `updates` is None for a gather. Return
        `NotImplemented` to run the call with NumPy.
        """
        ...

    @abstractmethod
    def spec(self, op: str, operand: str, value: Any) -> np.ndarray[Any, Any] | ArraySpec:
        """Return a NumPy view of the array, or its spec if values cannot be read."""
        ...

    def device(self, value: Any) -> str:
        """Return the device of an array: "cpu" or "cuda"."""
        return "cpu"

    def describe(self, attributes: Attributes, data: Any, indices: Any, updates: Any) -> str:
        """Describe in one line how a call would run, for `explain`."""
        return ""


class FrameworkRow(NamedTuple):
    """The facts about a framework that are known without its adapter.

    Attributes
    ----------
    name, to_numpy : str
        As in `Framework`.
    stack : str
        The name of the function that stacks arrays.
    package : str
        The subpackage that contains the adapter, or "" if there is none.
    """

    name: str
    to_numpy: str
    stack: str = "np.stack"
    package: str = ""


WHOLE = "write {}[...] to read all of it"
_SOURCES = (
    FrameworkRow("torch", "write {}.numpy(force=True)", "torch.stack", "torch"),
    FrameworkRow("jax", "write np.asarray({})", "jnp.stack", "jax"),
    FrameworkRow("tensorflow", "write {}.numpy()", "tf.stack"),
    FrameworkRow("cupy", "write cupy.asnumpy({})", "cupy.stack", "cuda"),
    FrameworkRow("dask", "write {}.compute()", "dask.array.stack", "dask"),
    FrameworkRow("zarr", f"{WHOLE}, or give it to gatherum.files"),
    FrameworkRow("h5py", f"{WHOLE}, or give it to gatherum.files"),
    FrameworkRow(
        "netCDF4",
        "write np.ma.filled({}[...], value), since its mask would be lost",
        "np.ma.stack",
    ),
    FrameworkRow("tensorstore", "write {}.read().result() to read all of it"),
)
_by_module = {source.name: source for source in _SOURCES}
_by_module["jaxlib"] = _by_module["jax"]
# CUDA arrays of other frameworks. They are recognized by the protocols that their types support.
CUDA = FrameworkRow("cuda", "copy it to the host first", "its framework's stack", "cuda")
# The types of NumPy values, Python values and specs, and their subclasses in other modules.
OURS = (np.ndarray, np.generic, list, tuple, str, bytes, int, float, complex, ArraySpec)
# Types that do not belong to a framework.
COMMON = frozenset((*OURS, bool, type(None)))

GROUP = "gatherum.frameworks"
_adapters: dict[str, Framework] = {}
_installed: dict[str, Any] | None = None  # entry points by name; None before they are read


def register(adapter: Framework) -> None:
    """Register an adapter, which then runs calls on the arrays of its framework.

    Parameters
    ----------
    adapter : Framework
        The adapter. It replaces any other adapter of the framework.

    Raises
    ------
    TypeError
        If the adapter lacks a member of `Framework`.
    """
    if isinstance(adapter, type):
        raise framework_errors.not_an_adapter(adapter.__name__)
    for member in ("name", "modules", "to_numpy", "owns", "call", "spec", "device", "describe"):
        if not hasattr(adapter, member):
            raise framework_errors.no_adapter(type(adapter).__name__, member)
    if not isinstance(adapter.modules, tuple):
        raise framework_errors.not_module_names(adapter.modules)
    for module in adapter.modules:
        if module not in _by_module:
            _by_module[module] = FrameworkRow(adapter.name, adapter.to_numpy)
    _adapters[adapter.name] = adapter
    _met.clear()


def source_named(name: str) -> FrameworkRow:
    """Return the row of a framework that has an adapter in this package."""
    return CUDA if name == CUDA.name else _by_module[name]


class Foreign(NamedTuple):
    """The framework of a foreign array, and the name of its type."""

    source: FrameworkRow
    name: str


def foreign_type(array_type: type) -> Foreign | None:
    """Return the framework and type name of a foreign array type, or None for any other type."""
    if array_type in COMMON:
        return None
    if (origin := _met.get(array_type)) is None and not issubclass(array_type, OURS):
        for base in array_type.__mro__:
            root = str(base.__module__).partition(".")[0]
            if source := _by_module.get(root) or _find_installed(root):
                origin = Foreign(source, f"{source.name}.{base.__name__}")
                break
        if origin is None and _may_be_on_cuda(array_type):
            root = str(array_type.__module__).partition(".")[0]
            origin = Foreign(CUDA, f"{root}.{array_type.__name__}")
        if origin is not None and len(_met) < _MET_MOST:
            _met[array_type] = origin
    return origin


# The keys of the cache are types. The cache is small, because it keeps the types alive.
_met: dict[type, Foreign] = {}
_MET_MOST = 64


def _find_installed(root: str) -> FrameworkRow | None:
    """If an installed package registers an adapter for a module, return the framework's row.

    The list of entry points is read once, for the first unknown type.
    """
    global _installed  # noqa: PLW0603
    if _installed is None:
        from importlib.metadata import entry_points  # a slow import

        _installed = {entry.name: entry for entry in entry_points(group=GROUP)}
    if root in _installed:
        adapter = _installed[root].load()
        register(adapter)
        _by_module.setdefault(root, FrameworkRow(adapter.name, adapter.to_numpy))
        del _installed[root]
    return _by_module.get(root)


def _may_be_on_cuda(array_type: type) -> bool:
    """Return True if values of a type may be arrays on a CUDA device.

    Such types have the CUDA array interface, or support DLPack without NumPy's ``__array__``.
    """
    if hasattr(array_type, "__cuda_array_interface__"):
        return True
    return hasattr(array_type, "__dlpack_device__") and not hasattr(array_type, "__array__")


def adapter_of(array_type: type) -> Framework | None:
    """Return the adapter for arrays of a type, or None if there is none.

    If the framework is loaded, its adapter is imported for the first array.
    """
    if (origin := foreign_type(array_type)) is None:
        return None
    name, package = origin.source.name, origin.source.package
    loaded = name in sys.modules or origin.source is CUDA
    if name not in _adapters and package and loaded:
        import_module(f"gatherum.{package}")
    adapter = _adapters.get(name)
    return adapter if adapter is not None and adapter.owns(array_type) else None


def imports_adapter(array_type: type) -> bool:
    """Import the adapter of a type; return True if it was not yet imported."""
    before = len(_adapters)
    adapter_of(array_type)
    return len(_adapters) > before


def adapter_member(op: str, operands: Mapping[str, object], name: str = "groups") -> Any:
    """Return an optional member of the first operand's adapter, such as `groups`.

    Return None if the adapter has no such member: NumPy then runs the call or raises an error.
    """
    adapter = adapter_of(type(next(iter(operands.values()))))
    if (member := getattr(adapter, name, None)) is not None:
        check_one_framework(op, operands)
    return member


def spec(op: str, operand: str, value: object) -> object:
    """Convert an array of an adapter to a NumPy array or spec; return other values unchanged."""
    adapter = adapter_of(type(value))
    return value if adapter is None else adapter.spec(op, operand, value)


def describe(attributes: Attributes, data: object, indices: object, updates: object) -> str:
    """Describe in one line how the framework of the data would run a call; return "" for NumPy."""
    adapter = adapter_of(type(data))
    return "" if adapter is None else adapter.describe(attributes, data, indices, updates)


def device(value: object) -> str:
    """Return the device of an array: "cpu" or "cuda"."""
    adapter = adapter_of(type(value))
    return "cpu" if adapter is None else adapter.device(value)


def check_one_framework(op: str, operands: Mapping[str, object]) -> None:
    """Raise TypeError if two operands are arrays of different frameworks."""
    first: tuple[str, Foreign] | None = None
    met: type | None = None
    for operand, value in operands.items():
        array_type = type(value)
        if (
            array_type in COMMON
            or array_type is met
            or (origin := foreign_type(array_type)) is None
        ):
            continue
        met = array_type
        if first is None:
            first = operand, origin
        elif origin.source != first[1].source:
            raise framework_errors.two_frameworks(op, first[0], first[1].name, operand, origin.name)
