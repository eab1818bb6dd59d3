"""Nodes of a Zarr directory: arrays, and groups of nodes."""

from __future__ import annotations

import json
import os
from typing import Any

from gatherum._system.regular_files import read_regular
from gatherum.files.formats.members import MOST_LISTED, group_given

METADATA = ("zarr.json", ".zarray")
GROUP, ATTRIBUTES = ".zgroup", ".zattrs"  # of format 2
LONGEST_METADATA = 16 << 20
DEEPEST = 8  # the number of levels of groups that are searched for arrays


def metadata_name(path: str) -> str | None:
    """Return the name of the metadata file of an array in a directory, if it exists."""
    return next((n for n in METADATA if os.path.lexists(os.path.join(path, n))), None)


def parsed(file: str, content: bytes) -> Any:
    """Parse a metadata file. Raise ValueError if it is not valid JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file}: not valid JSON: {error}") from None


def zarr_group_given(path: str, metadata: Any = None) -> ValueError | None:
    """Return the error for a group where an array is expected, or None if the node is not a group.

    `metadata` is the content of zarr.json, or None in format 2. The members of a group at a URL are
    read from consolidated metadata.
    """
    if metadata is None:
        if not os.path.lexists(os.path.join(path, GROUP)):
            return None
        attributes = _read(os.path.join(path, ATTRIBUTES))
    elif _kind_of(metadata) != "group":
        return None
    else:
        attributes = metadata.get("attributes")
    names: list[str] = []
    if os.path.isdir(path):
        _list_arrays(path, "", names, 0)
    else:
        names = _consolidated(metadata)
    encoding = attributes.get("encoding-type") if isinstance(attributes, dict) else None
    return group_given(path, "array", names, encoding)


def _kind_of(metadata: Any) -> object:
    """Return the type of a node from format 3 metadata."""
    return metadata.get("node_type") if isinstance(metadata, dict) else None


def _read(file: str) -> Any:
    """Return the content of a metadata file, or None if it cannot be read."""
    try:
        return parsed(file, read_regular(file, LONGEST_METADATA))
    except (OSError, ValueError):
        return None


def _list_arrays(folder: str, prefix: str, names: list[str], depth: int) -> None:
    """Collect the arrays of a group and its subgroups, a few levels deep, without links."""
    with os.scandir(folder) as entries:
        nodes = sorted(child.name for child in entries if child.is_dir(follow_symlinks=False))
    for name in nodes:
        if len(names) >= MOST_LISTED:
            return
        path = os.path.join(folder, name)
        node_type = _node(path)
        if node_type == "array":
            names.append(prefix + name)
        elif node_type == "group" and depth < DEEPEST:
            _list_arrays(path, f"{prefix}{name}/", names, depth + 1)


def _node(path: str) -> object:
    """Return the type of the node in a directory, or None if it contains no node."""
    name = metadata_name(path)
    if name == "zarr.json":
        return _kind_of(_read(os.path.join(path, name)))
    if name is not None:
        return "array"
    return "group" if os.path.lexists(os.path.join(path, GROUP)) else None


def _consolidated(metadata: Any) -> list[str]:
    """Return the arrays listed in the consolidated metadata of a format 3 group, if any."""
    nodes: Any = metadata.get("consolidated_metadata") if isinstance(metadata, dict) else None
    nodes = nodes.get("metadata") if isinstance(nodes, dict) else None
    if not isinstance(nodes, dict):
        return []
    return [name for name, node in nodes.items() if _kind_of(node) == "array"][:MOST_LISTED]
