"""Suggest the equivalent operator if a missing attribute is a function of another library."""

from __future__ import annotations

# Maps the name of each function in another library to the equivalent call.
COUNTERPARTS = {
    "take": "gather(data, indices, axis)",
    "index_select": "gather(data, indices, axis)",
    "embedding": "gather(data, indices)",
    "take_along_axis": "gather_elements(data, indices, axis)",
    "take_along_dim": "gather_elements(data, indices, axis)",
    "gather_slices": "gather(data, indices, axis)",
    "scatter": "scatter_elements(data, indices, updates, axis) or scatter_slices",
    "put_along_axis": "scatter_elements(data, indices, updates, axis)",
    "scatter_add": "scatter_elements(data, indices, updates, axis, reduction='add')",
    "scatter_reduce": "scatter_elements(data, indices, updates, axis, reduction='add')",
    "scatter_update": "scatter_slices(data, indices, updates)",
    "index_copy": "scatter_slices(data, indices, updates, axis)",
    "index_fill": "scatter_slices(data, indices, value, axis)",
    "index_add": "scatter_slices(data, indices, updates, axis, reduction='add')",
    "index_reduce": "scatter_slices(data, indices, updates, axis, reduction='mul')",
    "index_put": "scatter_nd(data, indices, updates)",
    "scatter_nd_update": "scatter_nd(data, indices, updates)",
    "scatter_nd_add": "scatter_nd(data, indices, updates, reduction='add')",
    "scatter_nd_max": "scatter_nd(data, indices, updates, reduction='max')",
    "scatter_nd_min": "scatter_nd(data, indices, updates, reduction='min')",
    "scatter_sum": "groups.reduce(values, groups, func='sum')",
    "scatter_mean": "groups.reduce(values, groups, func='mean')",
    "scatter_max": "groups.reduce(values, groups, func='max')",
    "scatter_min": "groups.reduce(values, groups, func='min')",
    "scatter_softmax": "groups.transform(values, groups, func='softmax')",
    "segment_sum": "groups.reduce(values, groups, func='sum')",
    "segment_mean": "groups.reduce(values, groups, func='mean')",
    "segment_max": "groups.reduce(values, groups, func='max')",
    "segment_min": "groups.reduce(values, groups, func='min')",
    "segment_prod": "groups.reduce(values, groups, func='prod')",
    "unsorted_segment_sum": "groups.reduce(values, groups, func='sum')",
    "groupby": "groups.reduce(values, groups, func='sum')",
    "bincount": "groups.reduce(values, groups, func='count')",
    "embedding_bag": "aggregate(data, gather_indices, scatter_indices)",
    "reduce": "groups.reduce(values, groups)",
    "transform": "groups.transform(values, groups, func)",
}


def counterpart_hint(name: str) -> str:
    """Return the end of the message for a missing name; "" if the name has no counterpart."""
    call = COUNTERPARTS.get(name)
    return f"; its counterpart is gatherum.{call}" if call else ""
