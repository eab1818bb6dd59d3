"""Read and write operator descs in the JSON form of DirectML's DxDispatch tool.

Like DxDispatch, the reader accepts short and full names of enumerations, fields inside ``Desc`` or
next to ``Type``, absent fields with defaults, comments and trailing commas. It raises ValueError
for errors that DxDispatch ignores: unknown and repeated members, and a DimensionCount that
contradicts Sizes. The writer uses full names and writes all fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .descs import DESCS, OperatorDesc, ScatterOperatorDesc
from .jsontext import parse_json
from .members import (
    TYPE_PREFIX,
    as_object,
    number_of,
    only_one,
    read_data_type,
    reject_unknown,
    shortened,
    unsigned,
    unsigned_list,
)
from .tensors import BufferTensorDesc
from .types import UINT32_MAX, UINT64_MAX, TensorFlags

_DESCS: Final[Mapping[str, type[OperatorDesc]]] = DESCS | {"SCATTER_ELEMENTS": ScatterOperatorDesc}

_OPERATOR_PREFIX: Final = "DML_OPERATOR_"
_FLAG_PREFIX: Final = "DML_TENSOR_FLAG_"
_BUFFER: Final = "DML_TENSOR_TYPE_BUFFER"

# Members of a dispatchable in a DxDispatch model that do not belong to the operator desc.
_DISPATCHABLE_MEMBERS: Final = ("dmlCompileType", "executionFlags", "bindings")
_TENSOR_MEMBERS: Final = (
    "DataType",
    "Flags",
    "DimensionCount",
    "Sizes",
    "Strides",
    "TotalTensorSizeInBytes",
    "GuaranteedBaseOffsetAlignment",
)


def from_json(source: str | bytes | Mapping[str, Any], name: str | None = None) -> OperatorDesc:
    """Read an operator desc in DxDispatch's JSON form.

    Parameters
    ----------
    source : str, bytes or mapping
        JSON text, or the result of `json.load`: an operator desc, or a whole model.
    name : str, optional
        The model's dispatchable to read; not needed if the model has only one.

    Returns
    -------
    operator desc
        One of the six.

    Raises
    ------
    ValueError
        If it is not valid JSON or not such a desc; the message names the member at fault.
    TypeError
        If ``source`` is neither text nor a mapping.

    Examples
    --------
    >>> desc = from_json('''{
    ...     "type": "GATHER_ELEMENTS",
    ...     "desc": {
    ...         "InputTensor": {"DataType": "FLOAT32", "Sizes": [3, 3]},
    ...         "IndicesTensor": {"DataType": "UINT32", "Sizes": [2, 3]},
    ...         "OutputTensor": {"DataType": "FLOAT32", "Sizes": [2, 3]},
    ...         "Axis": 0,
    ...     },
    ... }''')
    >>> desc.operator, desc.axis
    ('GATHER_ELEMENTS', 0)
    """
    if isinstance(source, (str, bytes)):
        source = parse_json(source)
    elif not isinstance(source, Mapping):
        raise TypeError(
            f"from_json: `source` must be JSON text or a mapping, got {type(source).__name__}"
        )
    source = as_object(source, "the operator desc")
    if "dispatchables" in source:
        return _read_dispatchable(source["dispatchables"], name)
    if name is not None:
        raise ValueError(
            "`name` must be left out: the source is one operator desc, not a model with names"
        )
    return _read_operator(source)


def _read_dispatchable(source: object, name: str | None) -> OperatorDesc:
    """Return the desc of the dispatchable with the given name, or of the only dispatchable."""
    dispatchables = as_object(source, "`dispatchables`")
    names = ", ".join(shortened(known_name) for known_name in dispatchables) or "none"
    if name is None and len(dispatchables) != 1:
        raise ValueError(
            f"the model must have one dispatchable where `name` does not say which, got {names}"
        )
    if name is None:
        (name,) = dispatchables
    elif name not in dispatchables:
        raise ValueError(
            f"`name` must be one of the model's dispatchables, {names}; got {shortened(name)}"
        )
    where = f"`dispatchables.{name}`"
    dispatchable = as_object(dispatchables[name], where)
    try:
        return _read_operator(dispatchable)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def operator_of(dispatchable: Mapping[str, Any]) -> str | None:
    """Return the name of the operator of a JSON object, or None if it is not one of the six."""
    name = dispatchable.get("Type", dispatchable.get("type"))
    if not isinstance(name, str):
        return None
    desc = _DESCS.get(name.removeprefix(_OPERATOR_PREFIX))
    return desc.operator if desc else None


def to_json(desc: OperatorDesc) -> dict[str, Any]:
    """Write an operator desc in DxDispatch's JSON form, with full names and all fields.

    Parameters
    ----------
    desc : operator desc
        With its output tensor.

    Returns
    -------
    dict
        For `json.dumps`, or for use as a dispatchable of a DxDispatch model. `from_json` returns
        an equal desc.

    Raises
    ------
    ValueError
        If the output tensor is missing, or a number does not fit DirectML's field.

    Examples
    --------
    >>> from gatherum.directml import BufferTensorDesc, GatherElementsOperatorDesc, to_json
    >>> tensor = BufferTensorDesc("FLOAT16", (2,))
    >>> indices = BufferTensorDesc("INT32", (2,))
    >>> text = to_json(GatherElementsOperatorDesc(tensor, indices, tensor, 0))
    >>> text["type"], text["desc"]["IndicesTensor"]["Desc"]["DataType"]
    ('DML_OPERATOR_GATHER_ELEMENTS', 'DML_TENSOR_DATA_TYPE_INT32')
    """
    members: dict[str, Any] = {}
    for name, attribute in desc.field_names().items():
        value = getattr(desc, attribute)
        if value is None:
            raise ValueError(f"to_json: `{name}` must be a tensor, got None")
        if isinstance(value, BufferTensorDesc):
            members[name] = _write_tensor(name, value)
        else:
            members[name] = unsigned(value, f"to_json: `{name}`", UINT32_MAX)
    return {"type": _OPERATOR_PREFIX + desc.operator, "desc": members}


def _write_tensor(name: str, tensor: BufferTensorDesc) -> dict[str, Any]:
    where = f"to_json: `{name}."
    members: dict[str, Any] = {
        "DataType": TYPE_PREFIX + tensor.data_type.name,
        "Flags": _FLAG_PREFIX + str(tensor.flags.name),
        "DimensionCount": tensor.dimension_count,
        "Sizes": list(unsigned_list(tensor.sizes, f"{where}Sizes")),
    }
    if tensor.strides is not None:  # DxDispatch does not accept null here
        members["Strides"] = list(unsigned_list(tensor.strides, f"{where}Strides"))
    total, alignment = tensor.total_tensor_size_in_bytes, tensor.guaranteed_base_offset_alignment
    field = "TotalTensorSizeInBytes"
    members[field] = unsigned(total, f"{where}{field}`", UINT64_MAX)
    field = "GuaranteedBaseOffsetAlignment"
    members[field] = unsigned(alignment, f"{where}{field}`", UINT32_MAX)
    return {"Type": _BUFFER, "Desc": members}


def _read_operator(source: Mapping[str, Any]) -> OperatorDesc:
    type_key = only_one(source, "Type", "type", "the operator desc")
    if type_key is None:
        raise ValueError("the operator desc must have a member 'type'")
    name = source[type_key]
    if not isinstance(name, str):
        raise ValueError(f"`{type_key}` must be a string, got {shortened(name)}")
    cls = _DESCS.get(name.removeprefix(_OPERATOR_PREFIX))
    if cls is None:
        type_names = ", ".join(_OPERATOR_PREFIX + operator for operator in _DESCS)
        raise ValueError(f"`{type_key}` must be one of {type_names}, got {shortened(name)}")
    names = cls.field_names()
    desc_key = only_one(source, "Desc", "desc", "the operator desc")
    known_members = (type_key, *_DISPATCHABLE_MEMBERS)
    if desc_key is None:
        members, where = source, ""
        reject_unknown(source, (*known_members, *names), "the operator desc")
    else:
        reject_unknown(source, (*known_members, desc_key), "the operator desc")
        members, where = as_object(source[desc_key], f"`{desc_key}`"), f"{desc_key}."
        reject_unknown(members, tuple(names), f"`{desc_key}`")
    values: dict[str, Any] = {}
    for field, attribute in names.items():
        if field not in members:
            raise ValueError(f"`{where}{field}` is missing: {name} needs it")
        value = members[field]
        if attribute.endswith("_tensor"):
            values[attribute] = _read_tensor(value, f"{where}{field}")
        else:
            values[attribute] = unsigned(value, f"`{where}{field}`", UINT32_MAX)
    return cls(**values)


def _read_tensor(source: object, where: str) -> BufferTensorDesc:
    tensor = as_object(source, f"`{where}`")
    tensor_type = tensor.get("Type", _BUFFER)
    if tensor_type not in (_BUFFER, "BUFFER"):
        raise ValueError(f"`{where}.Type` must be {_BUFFER}, got {shortened(tensor_type)}")
    if "Desc" not in tensor:
        return _read_buffer_tensor(tensor, (*_TENSOR_MEMBERS, "Type"), where)
    reject_unknown(tensor, ("Type", "Desc"), f"`{where}`")
    where = f"{where}.Desc"
    return _read_buffer_tensor(as_object(tensor["Desc"], f"`{where}`"), _TENSOR_MEMBERS, where)


def _read_buffer_tensor(
    members: Mapping[str, Any], known_members: tuple[str, ...], where: str
) -> BufferTensorDesc:
    reject_unknown(members, known_members, f"`{where}`")
    for field in ("DataType", "Sizes"):
        if field not in members:
            raise ValueError(f"`{where}.{field}` is missing: every tensor needs it")
    data_type = read_data_type(members["DataType"], f"{where}.DataType")
    flags = _read_flags(members.get("Flags", "NONE"), where)
    sizes = unsigned_list(members["Sizes"], f"`{where}.Sizes")
    strides = None
    if "Strides" in members:  # DxDispatch reads an empty list as none
        strides = unsigned_list(members["Strides"], f"`{where}.Strides") or None
    count = number_of(members, "DimensionCount", where, UINT32_MAX, len(sizes))
    for name, values in (("Sizes", sizes), ("Strides", strides)):
        if values is not None and len(values) != count:
            raise ValueError(
                f"`{where}.DimensionCount` must be the length of {name}, {len(values)}, got {count}"
            )
    total = number_of(members, "TotalTensorSizeInBytes", where, UINT64_MAX)
    alignment = number_of(members, "GuaranteedBaseOffsetAlignment", where, UINT32_MAX)
    # DxDispatch reads a total size of 0 as absent.
    return BufferTensorDesc(data_type, sizes, strides, total or None, alignment, flags)


def _read_flags(value: object, where: str) -> TensorFlags:
    flags = TensorFlags.NONE
    for flag in value if isinstance(value, list) else [value]:
        short_name = flag.removeprefix(_FLAG_PREFIX) if isinstance(flag, str) else ""
        if short_name not in TensorFlags.__members__:
            flag_names = ", ".join(TensorFlags.__members__)
            raise ValueError(f"`{where}.Flags` must be of {flag_names}, got {shortened(flag)}")
        flags |= TensorFlags[short_name]
    return flags
