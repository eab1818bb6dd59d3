"""JAX on a device that is this processor: XLA's calls are calls on CUDA devices.

Start a process with the environment of `stand_in.build`, and call `use` in it. The handlers for
CUDA devices are then registered for the processor, with the stream and the memory of
`xla_device.c`, the driver of `libcuda.c`, and kernels that the shim runs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from doubles import sort_on_host

_CAPSULE = b"xla._CUSTOM_CALL_TARGET"


class Xla:
    """What tests set and read in the library."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libxla_device.so")

    def number(self, name: str) -> Any:
        """Return a number of the library, whose `value` may be set."""
        return ctypes.c_long.in_dll(self.library, f"xla_{name}")

    def has_memory(self, is_left: bool) -> None:
        """Let allocations of scratch memory succeed or fail."""
        ctypes.c_int.in_dll(self.library, "xla_memory_left").value = int(is_left)


def pointer_to(capsule: object) -> int:
    """Return the address of the handler in a capsule."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return int(pointer(capsule, _CAPSULE))


def _capsule_of(function: Any) -> object:
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype = ctypes.py_object
    capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return capsule(ctypes.cast(function, ctypes.c_void_p), _CAPSULE, None)


def _lower_for(platform: str) -> None:
    """Lower calls on the processor as on a platform."""
    from jax.interpreters import mlir

    from gatherum.jax import primitives, products, sharding

    lower = partial(sharding.lower, platform=platform)
    for primitive in (primitives.GATHER, primitives.SCATTER):
        mlir.register_lowering(primitive, lower, platform="cpu")
    others = products._lower if platform == "cpu" else products.lower_composed
    mlir.register_lowering(products.OTHERS, others, platform="cpu")


@contextmanager
def lowered_for(platform: str) -> Iterator[None]:
    """Lower calls for another platform meanwhile."""
    import jax

    for name in (platform, "cuda"):
        _lower_for(name)
        jax.clear_caches()
        if name == platform:
            yield


def use() -> Xla:
    """Let calls on JAX arrays run on the device."""
    import jax

    from gatherum._system import native
    from gatherum.cuda import cub
    from gatherum.jax import adapter, aggregation, elementary, primitives

    xla = Xla()
    handlers = (ctypes.c_void_p * 2).in_dll(xla.library, "xla_handlers")
    for recordable, name in enumerate(("call", "recordable_call")):
        handlers[recordable] = pointer_to(native.xla_device_handler(bool(recordable)))
        handler = _capsule_of(getattr(xla.library, name))
        stages = {"initialize": handler, "execute": handler} if recordable else handler
        jax.ffi.register_ffi_target(f"device_{name}", stages, platform="cpu")
        primitives.targets_on_cuda[bool(recordable)] = f"device_{name}"
    _lower_for("cuda")
    elementary.TARGET = "device_call"  # type: ignore[misc]
    for module in (adapter, aggregation, elementary):
        module.is_on_cpu = lambda value: not isinstance(value, jax.Array)  # type: ignore[attr-defined]
    adapter.is_on_cuda = lambda value: isinstance(value, jax.Array)  # type: ignore[attr-defined]
    cub.check_import = lambda: None  # type: ignore[assignment]
    cub.sort_with_cub = sort_on_host
    return xla
