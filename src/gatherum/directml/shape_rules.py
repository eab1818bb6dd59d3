"""The shape rules, on plain sizes: one function per group of operators.

Each function records violations in an `Inspection` and returns the required sizes of the output
(for scatters: of the updates), or None if the violations leave them undetermined. ``D`` in the
messages is the DimensionCount that all tensors of an operator share.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from .violations import Inspection, listing

Sizes: TypeAlias = tuple[int, ...]


class NdCounts(NamedTuple):
    """How many dimensions of the input, the indices and the batch are meaningful."""

    input: int
    indices: int
    batch: int = 0


def gather_sizes(
    sizes: Sizes, indices: Sizes, axis: int, index_dimensions: int, inspection: Inspection
) -> Sizes | None:
    """Return the required sizes of GATHER's output."""
    dimension_count = len(sizes)
    padding = dimension_count - index_dimensions
    cropped = max(index_dimensions - 1, 0)  # leading 1s of the input that the indices replace
    if not _axis_fits(axis, dimension_count, inspection) or not inspection.require(
        0 <= index_dimensions <= axis + 1,
        "IndexDimensions",
        f"be 0 to {axis + 1} (Axis + 1)",
        index_dimensions,
        f"{inspection.page}, IndexDimensions; erratum 3",
    ):
        return None
    why = f"{cropped} of its dimensions must be cropped so that the indices fit"
    crops = _starts_with_ones("InputTensor", sizes, cropped, (why, "OutputTensor"), inspection)
    why = f"IndexDimensions is {index_dimensions}"
    cause = why, "IndexDimensions"
    pads = _starts_with_ones("IndicesTensor", indices, padding, cause, inspection)
    if not (crops and pads):
        return None
    prepended = (1,) if index_dimensions == 0 else ()
    return (*prepended, *sizes[cropped:axis], *indices[padding:], *sizes[axis + 1 :])


def elements_sizes(sizes: Sizes, indices: Sizes, axis: int, inspection: Inspection) -> Sizes | None:
    """Return the required sizes of GATHER_ELEMENTS' output and SCATTER's updates."""
    if not _axis_fits(axis, len(sizes), inspection):
        return None
    expected = (*sizes[:axis], indices[axis], *sizes[axis + 1 :])
    inspection.require(
        indices == expected,
        "IndicesTensor.Sizes",
        f"equal InputTensor.Sizes = {listing(sizes)} on every dimension but Axis = {axis}",
        listing(indices),
        f"{inspection.page}, IndicesTensor",
    )
    return indices


def nd_sizes(
    sizes: Sizes, indices: Sizes, counts: NdCounts, result: str, inspection: Inspection
) -> Sizes | None:
    """Return the required sizes of ``result``: GATHER_ND's output or SCATTER_ND's updates."""
    input_count, indices_count, batch_count = counts
    dimension_count = len(sizes)
    if not _counts_fit(counts, dimension_count, inspection):
        return None
    if not _nd_indices_fit(sizes, indices, counts, inspection):
        return None
    addressed = batch_count + indices[-1]
    relevant = (
        indices[dimension_count - indices_count : -1]
        + sizes[dimension_count - input_count + addressed :]
    )
    if not inspection.require(
        len(relevant) <= dimension_count,
        f"{result}.DimensionCount",
        f"be at least {len(relevant)} to hold {listing(relevant)}",
        dimension_count,
        f"{inspection.page}, {result}",
    ):
        return None
    return (1,) * (dimension_count - len(relevant)) + relevant


def _nd_indices_fit(sizes: Sizes, indices: Sizes, counts: NdCounts, inspection: Inspection) -> bool:
    """Check padding, batches and the length of the index tuples."""
    input_count, indices_count, batch_count = counts
    dimension_count, tuple_length = len(sizes), indices[-1]
    fits = True
    for tensor, tensor_sizes, name, count in (
        ("InputTensor", sizes, "InputDimensionCount", input_count),
        ("IndicesTensor", indices, "IndicesDimensionCount", indices_count),
    ):
        cause = (f"{name} is {count}", name)
        fits &= _starts_with_ones(tensor, tensor_sizes, dimension_count - count, cause, inspection)
    batch = sizes[dimension_count - input_count :][:batch_count]
    batch_of_indices = indices[dimension_count - indices_count :][:batch_count]
    fits &= inspection.require(
        batch == batch_of_indices,
        "IndicesTensor.Sizes",
        f"have the input's batch sizes {listing(batch)} in its first {batch_count} meaningful "
        "dimensions",
        listing(batch_of_indices),
        f"{inspection.page}, BatchDimensionCount",
    )
    limit = "InputDimensionCount" + (" - BatchDimensionCount" if batch_count else "")
    return (
        inspection.require(
            1 <= tuple_length <= input_count - batch_count,
            f"IndicesTensor.Sizes[{dimension_count - 1}]",
            f"be 1 to {input_count - batch_count} ({limit}), as it is the number of coordinates in "
            "an index tuple",
            tuple_length,
            f"{inspection.page}, IndicesTensor; erratum 12",
        )
        and fits
    )


def _counts_fit(counts: NdCounts, dimension_count: int, inspection: Inspection) -> bool:
    input_count, indices_count, batch_count = counts
    page = inspection.page
    erratum = "; erratum 11" if inspection.operator == "SCATTER_ND" else ""
    fits = True
    for field, count in (
        ("InputDimensionCount", input_count),
        ("IndicesDimensionCount", indices_count),
    ):
        rule = f"{page}, {field}{erratum}"
        fits &= inspection.require(
            1 <= count <= dimension_count, field, f"be 1 to {dimension_count} (D)", count, rule
        )
    limit = min(input_count, indices_count)
    # Both counts are at least 1, so 0 batch dimensions always fit: this fails only for GATHER_ND1.
    return fits and inspection.require(
        0 <= batch_count < limit,
        "BatchDimensionCount",
        f"be 0 to {limit - 1}, below InputDimensionCount = {input_count} and "
        f"IndicesDimensionCount = {indices_count}",
        batch_count,
        f"{page}, BatchDimensionCount",
    )


def _axis_fits(axis: int, dimension_count: int, inspection: Inspection) -> bool:
    return inspection.require(
        0 <= axis < dimension_count,
        "Axis",
        f"be 0 to {dimension_count - 1} (D - 1)",
        axis,
        f"{inspection.page}, Axis",
    )


def _starts_with_ones(
    tensor: str, sizes: Sizes, count: int, cause: tuple[str, str], inspection: Inspection
) -> bool:
    """Require leading sizes of 1; ``cause`` is the reason and the section of the page."""
    reason, section = cause
    return inspection.require(
        all(size == 1 for size in sizes[:count]),
        f"{tensor}.Sizes",
        f"start with {count} {'size' if count == 1 else 'sizes'} of 1, as {reason}",
        listing(sizes),
        f"{inspection.page}, {section}",
    )
