"""The error messages about arrays of other frameworks, about xarray objects and about adapters."""


def no_adapter(found: str, member: str) -> TypeError:
    return TypeError(
        f"frameworks.register: the adapter must have `{member}`, which {found} lacks; see "
        "gatherum.frameworks.Framework"
    )


def not_an_adapter(found: str) -> TypeError:
    return TypeError(f"frameworks.register: the adapter must be an object, got the class {found}")


def no_modules(found: object) -> TypeError:
    return TypeError(
        f"frameworks.register: `modules` must be a tuple of names of modules, got {found!r}"
    )


def no_array_result(op: str, adapter: str, found: object) -> TypeError:
    return TypeError(f"{op}: {adapter}.call must return an array, got {found!r}")


def foreign_array(op: str, operand: str, found: str, instead: str) -> TypeError:
    advice = f"; {instead}" if instead else ""
    return TypeError(f"{op}: `{operand}` must be a NumPy array, got a {found}{advice}")


def has_nulls(subject: str, found: str, instead: str) -> TypeError:
    return TypeError(f"{subject} must be without nulls, got {found}; {instead}")


def no_out_with_labels(op: str) -> TypeError:
    return TypeError(
        f"{op}: `out` must be None for an array of xarray, since the result is a new one; write "
        "data.data to call on the array that it holds"
    )


def no_names(op: str, count: int) -> ValueError:
    return ValueError(
        f"{op}: `indices` must be an xarray.DataArray, whose dimensions give the result {count} "
        "names; write data.data for a result without names"
    )


def other_name(op: str, operand: str, dimension: object, expected: object, found: object
               ) -> ValueError:  # fmt: skip
    return ValueError(
        f"{op}: dimension {dimension} of `{operand}` must be named {expected!r}, got {found!r}"
    )


def equal_names(
    op: str, names: tuple[object, ...], renamed: str = "those of `indices`"
) -> ValueError:
    twice = next(name for n, name in enumerate(names) if name in names[:n])
    return ValueError(
        f"{op}: the result would have two dimensions named {twice!r}; rename {renamed}"
    )


def loses_names(op: str, operand: str, instead: str = "") -> TypeError:
    suffix = f"; {instead}" if instead else ""
    return TypeError(
        f"{op}: `{operand}` must not be an xarray.DataArray, whose names would be lost; write "
        f"{operand}.values, or {operand}.data for the array that it holds{suffix}"
    )


def named_as_dimension(op: str, name: object) -> ValueError:
    return ValueError(
        f"{op}: the result would have a dimension and another coordinate of the name {name!r}; "
        "rename the coordinate, or drop it"
    )


def two_coordinates(op: str, name: object) -> ValueError:
    return ValueError(
        f"{op}: `data` and `indices` have different coordinates of the name {name!r}; rename one, "
        "or drop it"
    )


def held_array(op: str, operand: str, found: str, held: str, instead: str) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must be one array, got a {found} that holds a {held}; {instead}"
    )


def no_whole_items(op: str, operand: str, framework: str, found: object) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must have a dtype of {framework} that stores each number in whole "
        f"bytes, got {found}"
    )


def unread_values(op: str, operand: str, found: str) -> TypeError:
    return TypeError(f"{op}: `{operand}` must have values that can be read here, got a {found}")


def other_device(op: str, operand: str, expected: str, found: str, instead: str) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must be on the device of `data`, {expected}, got {found}; {instead}"
    )


def copy_in_capture(op: str, operand: str) -> RuntimeError:
    return RuntimeError(
        f"{op}: `{operand}` must be on the device while a CUDA graph is captured, got values on "
        "the host; copy them before the capture"
    )


def two_frameworks(
    op: str, operand: str, framework: str, other_operand: str, other_framework: str
) -> TypeError:
    return TypeError(
        f"{op}: the arrays must be of one framework, got a {framework} as `{operand}` "
        f"and a {other_framework} as `{other_operand}`"
    )
