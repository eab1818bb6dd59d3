"""Finds the private names of zarr that this package uses.

Tested with zarr 3.0.8 and 3.1.6. Codecs are kept within bounds by the methods that each codec of
zarr replaces. Where one is missing, Zarr arrays are refused: nothing would bound what a chunk
inflates to. Import this module only where `zarr` is installed.
"""

from typing import Any

from gatherum._system import private_names

TESTED = "3.0.8 to 3.1.6"
_PROTOTYPE = "zarr.core.buffer.default_buffer_prototype"
_REFUSED = "Zarr arrays are refused"
NAMES = {
    "zarr.abc.codec.BytesBytesCodec._decode_single": _REFUSED,
    "zarr.abc.codec.BytesBytesCodec._encode_single": _REFUSED,
    _PROTOTYPE: "that of zarr.buffer, which is public, is taken",
}
default_buffer_prototype: Any = private_names.find_name(
    "zarr.buffer.default_buffer_prototype"  # from 3.1 on
) or private_names.find_name(_PROTOTYPE)


_missing = [name for name in private_names.missing(NAMES) if NAMES[name] is _REFUSED]
if default_buffer_prototype is None:
    _missing.append(_PROTOTYPE)


def wrapped_store(store: Any) -> Any:
    """Return the store that a wrapper of zarr holds, else None: its attribute is private. Without
    it the paths of a wrapped store are not known.
    """
    return getattr(store, "_store", None)


def check_names() -> None:
    """Raise ImportError where a name is missing that nothing can stand for."""
    if _missing:
        import zarr

        lacking = private_names.lacking("zarr", zarr.__version__, TESTED, *_missing)
        raise ImportError(f"Zarr arrays cannot be kept within bounds: {lacking}")
