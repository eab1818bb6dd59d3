"""Files and Zarr stores at URLs, read by fsspec: only this room knows of networks."""

from gatherum.files.remote.file import RemoteFile
from gatherum.files.remote.store import Remote
from gatherum.files.remote.urls import (
    Address,
    address_of,
    checked_options,
    is_url,
    refuse_url,
)

__all__ = [
    "Address",
    "Remote",
    "RemoteFile",
    "address_of",
    "checked_options",
    "is_url",
    "refuse_url",
]
