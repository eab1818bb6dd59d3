"""The messages of `gatherum.groups`, each worded once."""

from __future__ import annotations

from collections.abc import Sequence

from gatherum.errors import Shape


def not_defined(op: str, func: str, dtype: object) -> TypeError:
    return TypeError(f"{op}: `func` {func!r} is not defined for dtype {dtype}")


def other_groups(op: str, along: int, whole: Shape, found: Shape) -> ValueError:
    instead = f", or that of `values`, {whole}" if len(whole) > 1 else ""
    return ValueError(f"{op}: `groups` must have shape ({along},){instead}, got {found}")


def empty_group(op: str, func: str, dtype: object, group: int, place: Sequence[int]) -> ValueError:
    where = f" (result[{', '.join(map(str, place))}])" if len(place) > 1 else ""
    return ValueError(
        f"{op}: `fill_value` must be given for {func!r} of dtype {dtype}, which has no value for "
        f"an empty group: group {group} is empty{where}"
    )
