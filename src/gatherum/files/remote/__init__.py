"""Files and Zarr stores at URLs, read by fsspec. Only this package uses the network."""

from gatherum.files.remote.file import RemoteFile
from gatherum.files.remote.store import Remote
from gatherum.files.remote.transport import ServerError
from gatherum.files.remote.urls import (
    UrlAddress,
    address_of,
    is_url,
    refuse_url,
)

__all__ = [
    "Remote",
    "RemoteFile",
    "ServerError",
    "UrlAddress",
    "address_of",
    "is_url",
    "refuse_url",
]
