"""Selects a framework's adapter by the module that defines an array's type.

Nothing is imported for that but the adapter itself, at the first of its arrays. A call whose `data`
are arrays of a framework goes to the framework's adapter; where there is none, the arrays are
refused (see `refusals`). An adapter comes from this package, from `register`, or from an installed
package: by an entry point of the group ``gatherum.frameworks`` that is named as the framework's
module.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import numpy as np

from gatherum._model import framework_errors
from gatherum._model.call import ArraySpec, Attributes


class Framework(Protocol):
    """The adapter of a framework: how calls run on its arrays.

    Attributes
    ----------
    name : str
        The framework's name, as messages write it.
    modules : tuple of str
        The first parts of the names of the modules that its types come from.
    to_numpy : str
        What to write for a NumPy array with an array's values, for example ``"write {}.numpy()"``.
    groups : object
        The functions that `gatherum.groups.protocol.Arrays` names, None where its arrays are to be
        converted for `gatherum.groups`. An adapter may leave it out.
    aggregate : callable
        Runs `gatherum.aggregate`: takes the data, both indices, an
        `edge_folds.AggregateOptions`, the weights and `out`. None as for `groups`.
    prepared : callable
        Makes what runs a call of `gatherum.prepare`: takes the attributes, the spec of the data,
        the indices, and what runs the call on arrays of NumPy; returns a function of data, updates,
        `out` and `fill_value`. None as for `groups`.
    quantized : callable
        Runs `gatherum.gather_quantized` on `_functions.quantized.spec.QuantizedAttributes` and the
        operands. None as for `groups`.
    """

    name: str
    modules: tuple[str, ...]
    to_numpy: str
    groups: Any = None
    aggregate: Any = None
    prepared: Any = None
    quantized: Any = None

    @abstractmethod
    def owns(self, kind: type) -> bool:
        """Return whether values of a type are arrays that `call` takes."""
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

        `data` is one of its arrays. `indices` and `updates` are too, or what NumPy takes;
        `updates` is None in a gather. `NotImplemented` says that NumPy is to take the call.
        """
        ...

    @abstractmethod
    def spec(self, op: str, operand: str, value: Any) -> np.ndarray[Any, Any] | ArraySpec:
        """Return a NumPy array of the same memory, or the spec where values cannot be read."""
        ...

    def device(self, value: Any) -> str:
        """Return where an array is: "cpu" or "cuda"."""
        return "cpu"

    def describe(self, attributes: Attributes, data: Any, indices: Any, updates: Any) -> str:
        """Return in a line how a call would run, for `explain`."""
        return ""


class FrameworkRow(NamedTuple):
    """What is known of a framework without its adapter.

    Attributes
    ----------
    name, to_numpy : str
        As of `Framework`.
    stack : str
        What makes one array of several.
    package : str
        The package here that has its adapter, "" for none.
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
# Arrays on a CUDA device of any other framework, known by the protocols that their types have.
CUDA = FrameworkRow("cuda", "copy it to the host first", "its framework's stack", "cuda")
# Arrays and values of NumPy and of Python, whatever module has made a type of its own of them, and
# specs.
OURS = (np.ndarray, np.generic, list, tuple, str, bytes, int, float, complex, ArraySpec)
# Types that are no framework's, wherever they come from.
COMMON = frozenset((*OURS, bool, type(None)))

GROUP = "gatherum.frameworks"
_adapters: dict[str, Framework] = {}
_installed: dict[str, Any] | None = None  # entry points by name, once they have been read


def register(adapter: Framework) -> None:
    """Send calls on arrays of a framework to its adapter.

    Parameters
    ----------
    adapter : Framework
        Of a framework that has none, or in the place of the one that it has.

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
        raise framework_errors.no_modules(adapter.modules)
    for module in adapter.modules:
        if module not in _by_module:
            _by_module[module] = FrameworkRow(adapter.name, adapter.to_numpy)
    _adapters[adapter.name] = adapter
    _met.clear()


def source_named(name: str) -> FrameworkRow:
    """Return what is known of a framework of this package."""
    return CUDA if name == CUDA.name else _by_module[name]


class Foreign(NamedTuple):
    """What a value is an array of: the framework, and the name of its type there."""

    source: FrameworkRow
    name: str


def foreign(kind: type) -> Foreign | None:
    """Return what arrays of a type are in another framework, None for any other type."""
    if kind in COMMON:
        return None
    if (found := _met.get(kind)) is None and not issubclass(kind, OURS):
        for base in kind.__mro__:
            root = str(base.__module__).partition(".")[0]
            if source := _by_module.get(root) or _find_installed(root):
                found = Foreign(source, f"{source.name}.{base.__name__}")
                break
        if found is None and _may_be_on_cuda(kind):
            root = str(kind.__module__).partition(".")[0]
            found = Foreign(CUDA, f"{root}.{kind.__name__}")
        if found is not None and len(_met) < _MET_MOST:
            _met[kind] = found
    return found


# Earlier answers by type. Few, because the types are kept alive.
_met: dict[type, Foreign] = {}
_MET_MOST = 64


def _find_installed(root: str) -> FrameworkRow | None:
    """Return the framework of a module for which an installed package has an adapter.

    The list of entry points is read once, at the first type that nothing else is known of.
    """
    global _installed  # noqa: PLW0603
    if _installed is None:
        from importlib.metadata import entry_points  # which takes as long to import as all the rest

        _installed = {entry.name: entry for entry in entry_points(group=GROUP)}
    if root in _installed:
        adapter = _installed[root].load()
        register(adapter)
        _by_module.setdefault(root, FrameworkRow(adapter.name, adapter.to_numpy))
        del _installed[root]
    return _by_module.get(root)


def _may_be_on_cuda(kind: type) -> bool:
    """Whether values of a type may be arrays on a CUDA device: they say so by its protocol, or by
    DLPack's and NumPy cannot read them.
    """
    if hasattr(kind, "__cuda_array_interface__"):
        return True
    return hasattr(kind, "__dlpack_device__") and not hasattr(kind, "__array__")


def adapter_of(kind: type) -> Framework | None:
    """Return the adapter that takes arrays of a type, None where there is none.

    That of a framework which is loaded is imported here, at the first of its arrays.
    """
    if (found := foreign(kind)) is None:
        return None
    name, package = found.source.name, found.source.package
    loaded = name in sys.modules or found.source is CUDA
    if name not in _adapters and package and loaded:
        import_module(f"gatherum.{package}")
    adapter = _adapters.get(name)
    return adapter if adapter is not None and adapter.owns(kind) else None


def imports_adapter(kind: type) -> bool:
    """Import the adapter of a type; return True if it was not yet imported."""
    before = len(_adapters)
    adapter_of(kind)
    return len(_adapters) > before


def namespace(op: str, operands: Mapping[str, object], name: str = "groups") -> Any:
    """Return what the adapter of the first operand has for groups, or for `aggregate`; None where
    NumPy is to take the call, or to refuse it.
    """
    adapter = adapter_of(type(next(iter(operands.values()))))
    if (found := getattr(adapter, name, None)) is not None:
        check_one_framework(op, operands)
    return found


def spec(op: str, operand: str, value: object) -> object:
    """Return a NumPy array or the spec of an array that an adapter takes, other values as they
    are.
    """
    adapter = adapter_of(type(value))
    return value if adapter is None else adapter.spec(op, operand, value)


def describe(attributes: Attributes, data: object, indices: object, updates: object) -> str:
    """Return in a line how a call would run on the framework of its data, "" for NumPy's."""
    adapter = adapter_of(type(data))
    return "" if adapter is None else adapter.describe(attributes, data, indices, updates)


def device(value: object) -> str:
    """Return where an array is: "cpu" or "cuda"."""
    adapter = adapter_of(type(value))
    return "cpu" if adapter is None else adapter.device(value)


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
        elif found.source != first[1].source:
            raise framework_errors.two_frameworks(op, first[0], first[1].name, operand, found.name)
