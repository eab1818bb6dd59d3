"""The private names of zarr that this package uses.

Tested with zarr 3.0.8 and 3.1.6. Codecs are bounded through the methods that each codec of zarr
overrides. If one of these methods is missing, Zarr arrays are not supported, because nothing would
bound the inflated size of a chunk. Import this module only if `zarr` is installed.
"""

from __future__ import annotations

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
    """Return the store inside a zarr wrapper, or None for any other store.

    The attribute is private. Without it the paths of a wrapped store are unknown.
    """
    return getattr(store, "_store", None)


def check_names() -> None:
    """Raise ImportError if a name without a substitute is missing."""
    if _missing:
        import zarr

        lacking = private_names.lacking("zarr", zarr.__version__, TESTED, *_missing)
        raise ImportError(f"Zarr arrays cannot be kept within bounds: {lacking}")
