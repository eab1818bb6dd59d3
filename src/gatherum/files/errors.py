"""Errors of the operands, outputs and options of calls on files.

Messages name the operator, the operand, the expected value and the actual value, as in
`gatherum._model.errors.calls`. The messages for errors in a file's contents are defined where these
errors are found.
"""

from __future__ import annotations

from gatherum._model.errors.audience import option
from gatherum._model.errors.texts import short


def is_or_are(role: str) -> str:
    """Return the verb after the name of an operand. All names except "table" are plurals."""
    return "is" if role == "table" else "are"


def several_operands(op: str, role: str, operand: object) -> TypeError:
    return TypeError(
        f"{op}: the {role} must be one path or one array, got a {type(operand).__name__} that "
        "contains strings or paths; call the function for each file, or pass "
        "numpy.array(strings) if the strings are the elements"
    )


def masked_operand(op: str, role: str) -> TypeError:
    return TypeError(f"{op}: the {role} {is_or_are(role)} a masked array, whose mask would be lost")


def neither_path_nor_array(op: str, role: str, operand: object) -> TypeError:
    return TypeError(
        f"{op}: the {role} must be a path, an array in memory, or an array of Zarr or h5py, "
        f"got {type(operand).__name__}"
    )


def not_writable(op: str, output: object, why: object) -> ValueError:
    return ValueError(f"{op}: {output} cannot be written, {why}")


def old_format(file: str, expected: str, found: str, command: str) -> ValueError:
    return ValueError(f"{file}: must be a file of {expected}, got {found}; {command} converts it")


def output_exists(output: object, reason: str) -> FileExistsError:
    return FileExistsError(f"{output}: exists already, and {reason} keeps it")


def output_is_operand(op: str, output: object, role: str, advice: str) -> ValueError:
    return ValueError(f"{op}: the output {output} is the same file as the {role}{advice}")


def output_is_url(op: str, output: object) -> ValueError:
    return ValueError(f"{op}: the output {output} is a URL; outputs are local files")


def array_in_place(op: str) -> ValueError:
    return ValueError(f"{op}: only a table in a file can be changed in place")


def other_output_in_place(op: str, table: object, output: object) -> ValueError:
    return ValueError(f"{op}: in place the output is the table, {table}, got {output}")


def operand_in_table(op: str, role: str, file: object) -> ValueError:
    return ValueError(f"{op}: the {role} are stored in the table's file, {file}")


def array_in_resumed_run(op: str, role: str) -> ValueError:
    return ValueError(
        f"{op}: a run can be resumed when all operands are files, the {role} {is_or_are(role)} an "
        "array"
    )


def no_output_to_resume(op: str) -> ValueError:
    return ValueError(f"{op}: a run without an output file cannot be resumed")


def half_written(path: str, table: str) -> str:
    """Return the message for a table that a stopped run has changed in part."""
    return (
        f"{path}: an in-place run was stopped while it wrote {table}; "
        f"complete it with {option('resume=True')} first"
    )


def not_a_size(op: str, operand: str, size: str) -> ValueError:
    return ValueError(f"{op}: `{operand}` must be a size such as '512MiB', got {short(size)}")


def other_type_of_size(op: str, operand: str, size: object) -> TypeError:
    return TypeError(f"{op}: `{operand}` must be a str or an int, got {type(size).__name__}")


def size_too_large(op: str, operand: str, size: object) -> ValueError:
    return ValueError(f"{op}: `{operand}` must be less than 1 EiB, got {short(size)}")


def memory_too_small(op: str, total: int) -> ValueError:
    return ValueError(f"{op}: `memory` must be at least 64 KiB, got {total} bytes")


def cache_too_small(op: str, row: int, total: int) -> ValueError:
    return ValueError(f"{op}: `cache` must hold at least one row, {row} bytes, got {total} bytes")


def no_folder(op: str, folder: str) -> FileNotFoundError:
    return FileNotFoundError(f"{op}: `spill_dir` must be a directory that exists, got {folder}")


def several_folders(op: str, found: object) -> TypeError:
    return TypeError(f"{op}: `spill_dir` must be one path, got {type(found).__name__}")


def not_options(op: str, found: str) -> TypeError:
    return TypeError(
        f"{op}: `storage_options` must be a dict whose keys are of type str, got {found}"
    )
