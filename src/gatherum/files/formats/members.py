"""Members of files: the errors for absent members, and for groups in place of arrays."""

from __future__ import annotations

MOST_LISTED = 1000  # maximum number of members of a file or a group to search
# For an anndata sparse matrix: the name of the lines that `indptr` divides, and the name of the
# lines in `indices`.
SPARSE = {"csr_matrix": ("row", "columns"), "csc_matrix": ("column", "rows")}


def choose_member(name: object, what: str, member: str | None, names: list[str]) -> str:
    """Return the member that a location names, or the only one, or raise ValueError.

    `what` is the word of the format for a member: array, tensor, dataset or column.
    """
    if member is None and len(names) == 1:
        return names[0]
    if member is not None and member in names:
        return member
    if not names:
        raise ValueError(f"{name}: the file holds no {what}s")
    if member is None:
        raise ValueError(
            f"{name}: name one of its {len(names)} {what}s after a colon: {_listed(names)}"
        )
    raise ValueError(f"{name}: the file has no such {what}; it holds {_listed(names)}")


def group_given(name: object, what: str, names: list[str], encoding: object) -> ValueError:
    """Return the error for a group where an array is expected.

    `what` is the word of the format for an array. `names` are the names of the arrays in the group.
    `encoding` is the attribute by which anndata marks a sparse matrix.
    """
    content = f"that holds {_listed(names)}" if names else f"without {what}s"
    advice = ""
    if isinstance(encoding, str) and (parts := SPARSE.get(encoding)):
        line, others = parts
        part = "[indptr[i]:indptr[i + 1]]"
        advice = (
            f"; it is a sparse matrix ({encoding}), whose {line} i has the values data{part} in "
            f"the {others} indices{part}"
        )
    article = "an" if what[0] in "aeiou" else "a"
    return ValueError(f"{name}: expected {article} {what}, got a group {content}{advice}")


def _listed(names: list[str]) -> str:
    """Return names as text, truncated after the first ones."""
    return ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "")
