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
    n, d = index_dimensions, len(sizes)
    cropped = max(n - 1, 0)  # leading 1s of the input that the indices replace
    if not _axis_fits(axis, d, inspection) or not inspection.require(
        0 <= n <= axis + 1,
        "IndexDimensions",
        f"be 0 to {axis + 1} (Axis + 1)",
        n,
        f"{inspection.page}, IndexDimensions; erratum 3",
    ):
        return None
    why = f"{cropped} of its dimensions must be cropped so that the indices fit"
    crops = _starts_with_ones("InputTensor", sizes, cropped, (why, "OutputTensor"), inspection)
    why = f"IndexDimensions is {n}"
    pads = _starts_with_ones("IndicesTensor", indices, d - n, (why, "IndexDimensions"), inspection)
    if not (crops and pads):
        return None
    prepended = (1,) if n == 0 else ()
    return (*prepended, *sizes[cropped:axis], *indices[d - n :], *sizes[axis + 1 :])


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
    r, q, b = counts
    d = len(sizes)
    if not _counts_fit(counts, d, inspection):
        return None
    if not _nd_indices_fit(sizes, indices, counts, inspection):
        return None
    relevant = indices[d - q : d - 1] + sizes[d - r + b + indices[-1] :]
    if not inspection.require(
        len(relevant) <= d,
        f"{result}.DimensionCount",
        f"be at least {len(relevant)} to hold {listing(relevant)}",
        d,
        f"{inspection.page}, {result}",
    ):
        return None
    return (1,) * (d - len(relevant)) + relevant


def _nd_indices_fit(sizes: Sizes, indices: Sizes, counts: NdCounts, inspection: Inspection) -> bool:
    """Check padding, batches and the length of the index tuples."""
    r, q, b = counts
    d, k = len(sizes), indices[-1]
    fits = True
    for tensor, tensor_sizes, name, count in (
        ("InputTensor", sizes, "InputDimensionCount", r),
        ("IndicesTensor", indices, "IndicesDimensionCount", q),
    ):
        cause = (f"{name} is {count}", name)
        fits &= _starts_with_ones(tensor, tensor_sizes, d - count, cause, inspection)
    batch, batch_of_indices = sizes[d - r : d - r + b], indices[d - q : d - q + b]
    fits &= inspection.require(
        batch == batch_of_indices,
        "IndicesTensor.Sizes",
        f"have the input's batch sizes {listing(batch)} in its first {b} meaningful dimensions",
        listing(batch_of_indices),
        f"{inspection.page}, BatchDimensionCount",
    )
    limit = "InputDimensionCount" + (" - BatchDimensionCount" if b else "")
    return (
        inspection.require(
            1 <= k <= r - b,
            f"IndicesTensor.Sizes[{d - 1}]",
            f"be 1 to {r - b} ({limit}), as it is the number of coordinates in an index tuple",
            k,
            f"{inspection.page}, IndicesTensor; erratum 12",
        )
        and fits
    )


def _counts_fit(counts: NdCounts, d: int, inspection: Inspection) -> bool:
    r, q, b = counts
    page = inspection.page
    erratum = "; erratum 11" if inspection.operator == "SCATTER_ND" else ""
    fits = True
    for field, count in (("InputDimensionCount", r), ("IndicesDimensionCount", q)):
        rule = f"{page}, {field}{erratum}"
        fits &= inspection.require(1 <= count <= d, field, f"be 1 to {d} (D)", count, rule)
    # r and q are at least 1 and so allow b = 0: this fails only for GATHER_ND1.
    return fits and inspection.require(
        0 <= b < min(r, q),
        "BatchDimensionCount",
        f"be 0 to {min(r, q) - 1}, below InputDimensionCount = {r} and IndicesDimensionCount = {q}",
        b,
        f"{page}, BatchDimensionCount",
    )


def _axis_fits(axis: int, d: int, inspection: Inspection) -> bool:
    return inspection.require(
        0 <= axis < d, "Axis", f"be 0 to {d - 1} (D - 1)", axis, f"{inspection.page}, Axis"
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
