"""The error messages about graph edges, given by a CSR pointer or as a sparse matrix."""


def two_destinations(op: str, operand: str) -> ValueError:
    return ValueError(f"{op}: must have `{operand}` or `indptr`, got both")


def no_destinations(op: str) -> ValueError:
    return ValueError(
        f"{op}: must have `scatter_indices`, `indptr`, or a sparse matrix as `gather_indices`"
    )


def destinations_twice(op: str, operand: str) -> ValueError:
    return ValueError(
        f"{op}: `{operand}` must be None where `gather_indices` is a sparse matrix, which has its "
        "own"
    )


def weights_twice(op: str) -> ValueError:
    return ValueError(
        f"{op}: `weights` must be None where `gather_indices` is a sparse matrix, whose values are "
        "the weights"
    )


def other_size(op: str, expected: int, operand: str, found: object) -> ValueError:
    return ValueError(
        f"{op}: `size` must be None or {expected}, which `{operand}` gives, got {found}"
    )


def other_columns(op: str, expected: int, found: int) -> ValueError:
    return ValueError(
        f"{op}: `gather_indices` must have a column for each row of `data`, {expected}, got {found}"
    )


def other_format(op: str, operand: str, found: str, instead: str) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must be a sparse matrix in CSR, CSC or COO format, got {found}; "
        f"{instead.format(operand)}"
    )


def data_not_a_tensor(op: str, operand: str, found: str) -> TypeError:
    return TypeError(
        f"{op}: `data` must be a tensor where `{operand}` is a sparse tensor, got {found}; write "
        "torch.as_tensor(data)"
    )


def not_of_rank(op: str, operand: str, expected: int, found: int) -> ValueError:
    dimensions = "dimension" if expected == 1 else "dimensions"
    return ValueError(f"{op}: `{operand}` must have {expected} {dimensions}, got {found}")


def empty_pointer(op: str, operand: str) -> ValueError:
    return ValueError(f"{op}: `{operand}` must have at least 1 entry, got 0")


def pointer_begins(op: str, operand: str, found: int) -> ValueError:
    return ValueError(f"{op}: `{operand}` must begin with 0, got {found} ({operand}[0])")


def pointer_falls(op: str, operand: str, found: int, before: int, position: int) -> ValueError:
    return ValueError(
        f"{op}: `{operand}` must not decrease, got {found} after {before} ({operand}[{position}])"
    )


def pointer_ends(op: str, operand: str, expected: int, found: int) -> ValueError:
    return ValueError(
        f"{op}: `{operand}` must end with the number of edges, {expected}, got {found}"
    )
