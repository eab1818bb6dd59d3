"""The private names of fsspec that this package uses.

Tested with fsspec 2025.3 and 2026.9. If a name is missing, documented functions of fsspec replace
it: callers must then pass the user and host of a URL as options, and requests use threads.
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


def options_in(filesystem_class: Any, url: str) -> dict[str, Any]:
    """Return the filesystem options in a URL, such as a user and a host."""
    read = getattr(filesystem_class, "_get_kwargs_from_urls", None)
    return {} if read is None else dict(read(url))


def path_in(filesystem: Any, url: str) -> str:
    """Return the path of a URL in a filesystem."""
    strip: Any = getattr(filesystem, "_strip_protocol", None)
    if strip is None:
        from fsspec.core import strip_protocol

        strip = strip_protocol
    return str(strip(url))


async def call(filesystem: Any, name: str, *arguments: Any, **options: Any) -> Any:
    """Call a method of a filesystem, as a coroutine if possible."""
    method = getattr(filesystem, f"_{name}", None) if filesystem.async_impl else None
    if method is not None:
        return await method(*arguments, **options)
    return await asyncio.to_thread(getattr(filesystem, name), *arguments, **options)
