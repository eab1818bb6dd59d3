"""Operator descs in JSON: read, checked at a feature level, compiled and dispatched.

Even first bytes are followed by JSON text, odd ones by choices that make a well-formed desc. The
reader returns a desc or one message, and the check returns its reasons. An accepted desc runs on
buffers of the sizes that it names, whatever its indices hold.
"""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from gatherum import directml
from gatherum.directml import FeatureLevel

from .commands import checked
from .source import Source

MOST = 1 << 14
TYPES = (
    "FLOAT32", "UINT32", "FLOAT16", "INT64", "INT32", "UINT64", "FLOAT64", "INT8", "UINT8", "INT16",
    "UINT16",
)  # fmt: skip
FIELDS: dict[str, tuple[str, ...]] = {
    "GATHER": ("Axis", "IndexDimensions"),
    "GATHER_ELEMENTS": ("Axis",),
    "GATHER_ND": ("InputDimensionCount", "IndicesDimensionCount"),
    "GATHER_ND1": ("InputDimensionCount", "IndicesDimensionCount", "BatchDimensionCount"),
    "SCATTER": ("Axis",),
    "SCATTER_ELEMENTS": ("Axis",),
    "SCATTER_ND": ("InputDimensionCount", "IndicesDimensionCount"),
}
TENSORS = ("InputTensor", "IndicesTensor", "UpdatesTensor", "OutputTensor")
MEMBERS = """
    type Type desc Desc DataType Sizes Strides Flags DimensionCount TotalTensorSizeInBytes
    GuaranteedBaseOffsetAlignment DML_OPERATOR_GATHER DML_TENSOR_FLAG_NONE OWNED_BY_DML
    DML_TENSOR_DATA_TYPE_FLOAT32 DML_TENSOR_TYPE_BUFFER dispatchables
"""
WORDS = r"""
    [1,1,2,2] [4] {} [] null true NaN 4294967295 4294967296 -1 1e3 // /* */ ,} ,] \u0000
"""
DICTIONARY = (
    *(f'"{name}"'.encode() for name in (*TYPES, *FIELDS, *TENSORS, *MEMBERS.split())),
    *(f'"{name}": '.encode() for names in FIELDS.values() for name in names),
    *(word.encode() for word in WORDS.split()),
    b"\xef\xbb\xbf",
)


def run(data: bytes) -> str:
    """Read a desc, check it, and run it if it is accepted."""
    source = Source(data)
    form = source.below(4)
    level = source.choice(tuple(FeatureLevel))
    text = source.rest() if form % 2 == 0 else json.dumps(drawn_desc(source)).encode()
    if form == 2:
        return checked(text, ".json", level)
    try:
        desc = directml.from_json(text)
    except ValueError as error:
        assert str(error) and "\n" not in str(error), f"not one line: {error!r}"
        return "refused"
    written = directml.to_json(desc)
    assert directml.from_json(json.dumps(written)) == desc, f"{desc} is written as {written}"
    violations = directml.check(desc, level)
    for violation in violations:
        assert violation.message and "\n" not in violation.message, violation
        assert violation.field and violation.rule, violation
    try:
        compiled = directml.Device(level).compile(desc)
    except ValueError:
        assert violations, f"accepted and not compiled: {desc}"
        return f"{desc.operator} rejected"
    assert not violations, f"compiled with {violations}: {desc}"
    return f"{desc.operator} {_dispatch(compiled, desc, source)}"


def seeds() -> Iterator[bytes]:
    """Yield valid descs of every operator as text, and choices at random."""
    rng = np.random.RandomState(21)
    for _ in range(400):
        yield bytes([1, rng.randint(15)]) + rng.bytes(rng.randint(10, 80))
    for operator in FIELDS:
        for form in (0, 2):
            for choices in (b"", b"\x00\x01" * 20, b"\x02\x00\x01" * 12):
                index = list(FIELDS).index(operator)
                desc = drawn_desc(Source(bytes([index]) + choices))
                yield bytes([form, 14]) + json.dumps(desc).encode()
    yield b'\x00\x0e// a comment\n{"type": "GATHER", "type": 1,}'
    yield b"\x00\x00" + b"[" * 100
    yield b'\x02\x00{"dispatchables": {}}'


def _dispatch(compiled: Any, desc: Any, source: Source) -> str:
    """Dispatch on buffers of exactly the sizes that the desc names."""
    tensors = {
        name: getattr(desc, name) for name in desc.field_names().values() if "tensor" in name
    }
    if any(tensor.total_tensor_size_in_bytes > MOST for tensor in tensors.values()):
        return "too large to run"
    if any(int(np.prod(tensor.sizes)) > MOST for tensor in tensors.values()):
        return "too large to run"
    rng = np.random.RandomState(source.below(256))
    buffers = {}
    for name, tensor in tensors.items():
        filled = rng.bytes(tensor.total_tensor_size_in_bytes) if source.once_in(2) else b""
        buffers[name] = bytearray(filled or tensor.total_tensor_size_in_bytes)
    kept = {name: bytes(buffer) for name, buffer in buffers.items() if name != "output_tensor"}
    compiled.index_report(buffers["indices_tensor"])
    compiled.dispatch(**buffers)
    assert all(buffers[name] == before for name, before in kept.items()), f"input changed: {desc}"
    return "dispatched"


# --- A desc of the right form


def _sizes(source: Source, rank: int) -> list[int]:
    return [source.choice((1, 2, 3, 1, 4, 0, 7)) if i else 1 for i in range(rank)]


def _tensor(source: Source, data_type: str, sizes: list[int], sound: bool) -> dict[str, Any]:
    tensor: dict[str, Any] = {"DataType": data_type, "Sizes": sizes}
    variant = source.below(12)
    if sound and variant in (1, 3, 4, 5, 6):
        return tensor | ({"Strides": _gaps(source, sizes)} if variant == 1 else {})
    if variant == 1:
        tensor["Strides"] = [source.below(5) for _ in sizes]
    elif variant == 2:
        tensor["Strides"] = [int(np.prod(sizes[i + 1 :])) for i in range(len(sizes))]
    elif variant == 3:
        tensor["TotalTensorSizeInBytes"] = source.choice((4, 1024, 1 << 40, 0))
    elif variant == 4:
        tensor["GuaranteedBaseOffsetAlignment"] = source.choice((4, 16, 3, 8))
    elif variant == 5:
        tensor["Flags"] = source.choice(("NONE", "OWNED_BY_DML", "DML_TENSOR_FLAG_NONE"))
    elif variant == 6:
        tensor["DimensionCount"] = source.choice((len(sizes), 4, 0))
    return tensor


def _gaps(source: Source, sizes: list[int]) -> list[int]:
    """Return strides that leave gaps between elements."""
    strides, extent = [], 1 + source.below(3)
    for size in reversed(sizes):
        strides.insert(0, extent)
        extent = extent * size + source.below(2)
    return strides


def drawn_desc(source: Source, *, sound: bool = False) -> dict[str, Any]:
    """Return a desc whose shapes usually fit. A sound desc is usually accepted."""
    operator = source.choice(tuple(FIELDS))
    rank = 1 + source.below(4) if sound or source.below(8) else source.choice((4, 5, 8, 9, 0))
    data, index = (
        source.choice(TYPES),
        source.choice(("UINT32", "INT32", "INT64", "UINT64", *(() if sound else TYPES))),
    )
    sizes = _sizes(source, rank)
    numbers = {}
    shapes = _elements(source, sizes, numbers)
    if operator == "GATHER":
        shapes = _gather(source, sizes, numbers)
    elif "_ND" in operator:
        shapes = _nd(source, sizes, numbers, batched=operator.endswith("1"))
    desc: dict[str, Any] = {}
    shapes = {**shapes, "InputTensor": sizes}
    if operator.startswith("SCATTER"):
        shapes["UpdatesTensor"], shapes["OutputTensor"] = shapes["OutputTensor"], sizes
    for name in TENSORS:
        if name in shapes:
            desc[name] = _tensor(
                source, index if name == "IndicesTensor" else data, shapes[name], sound
            )
    for name in FIELDS[operator]:
        desc[name] = numbers[name]
    if not sound and source.once_in(8):
        desc[source.choice(tuple(desc))] = source.choice((0, -1, 1 << 32, "4", None, [], {}))
    return {"type": "DML_OPERATOR_" + operator, "desc": desc}


def _elements(source: Source, sizes: list[int], numbers: dict[str, int]) -> dict[str, list[int]]:
    numbers["Axis"] = source.below(len(sizes) + 1)
    axis = min(numbers["Axis"], len(sizes) - 1)
    indices = [source.choice((2, 1, 3)) if i == axis else n for i, n in enumerate(sizes)]
    return {"IndicesTensor": indices, "OutputTensor": indices}


def _gather(source: Source, sizes: list[int], numbers: dict[str, int]) -> dict[str, list[int]]:
    rank, axis = len(sizes), min(numbers["Axis"], len(sizes) - 1)
    count = source.below(max(axis, 0) + 2)
    numbers["IndexDimensions"] = count
    inner = [source.choice((2, 1, 3)) for _ in range(count)]
    for i in range(max(count - 1, 0)):
        sizes[i] = 1
    indices = [1] * (rank - count) + inner
    padded = sizes if count else [1, *sizes]
    output = padded[max(count - 1, 0) : axis + (count == 0)] + inner + sizes[axis + 1 :]
    return {"IndicesTensor": indices[-rank:] if rank else [], "OutputTensor": output}


def _nd(
    source: Source, sizes: list[int], numbers: dict[str, int], *, batched: bool
) -> dict[str, list[int]]:
    d = len(sizes)
    r, q = 1 + source.below(max(d, 1)), 1 + source.below(max(d, 1))
    b = source.below(min(r, q)) if batched else 0
    k = 1 + source.below(max(r - b, 1))
    sizes[: d - r] = [1] * (d - r)
    data = sizes[d - r :]
    indices = data[:b] + [source.choice((2, 1, 3)) for _ in range(q - 1 - b)] + [k]
    moved = indices[:-1] + data[b + k :]
    numbers |= {"InputDimensionCount": r, "IndicesDimensionCount": q, "BatchDimensionCount": b}
    return {
        "IndicesTensor": [1] * (d - len(indices)) + indices,
        "OutputTensor": [1] * (d - len(moved)) + moved,
    }
