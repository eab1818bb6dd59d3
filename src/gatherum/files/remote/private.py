"""Finds the private names of fsspec that this package uses.

Tested with fsspec 2025.3 and 2026.9. Where one is missing, what fsspec documents takes its place:
user and host of a URL are then options that a caller names, and requests go through threads.
"""

from __future__ import annotations

import asyncio
from typing import Any

NAMES = {
    "fsspec.AbstractFileSystem._get_kwargs_from_urls": "a URL's user and host are not passed on",
    "fsspec.AbstractFileSystem._strip_protocol": "fsspec.core.strip_protocol is called",
    "fsspec.asyn.AsyncFileSystem._cat_file": "cat_file is called in a thread",
    "fsspec.asyn.AsyncFileSystem._info": "info is called in a thread",
}


def options_in(kind: Any, url: str) -> dict[str, Any]:
    """Return what a URL says of a filesystem's options, such as a user and a host."""
    read = getattr(kind, "_get_kwargs_from_urls", None)
    return {} if read is None else dict(read(url))


def path_in(filesystem: Any, url: str) -> str:
    """Return the path that a filesystem knows a URL by."""
    strip: Any = getattr(filesystem, "_strip_protocol", None)
    if strip is None:
        from fsspec.core import strip_protocol

        strip = strip_protocol
    return str(strip(url))


async def call(filesystem: Any, name: str, *arguments: Any, **options: Any) -> Any:
    """Call a method of a filesystem: as a coroutine where it has one."""
    method = getattr(filesystem, f"_{name}", None) if filesystem.async_impl else None
    if method is not None:
        return await method(*arguments, **options)
    return await asyncio.to_thread(getattr(filesystem, name), *arguments, **options)
