"""Compare `CompiledOperator.dispatch` with the oracle, byte for byte, on buffers of every format.

The bytes describe a desc and a buffer for each of its tensors: bytes, arrays of any dtype and
layout, memoryviews, mapped files, ctypes, buffers of objects, and objects without a buffer. Buffers
may be too small, read-only, or in the memory of another buffer. Flat bytes are written exactly as
the oracle writes them. Anything else raises a TypeError or a ValueError of one line, and no byte
changes.
"""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from canaries import byte_rows
from gatherum import directml, reference

from .buffers import Given, drawn_buffer
from .descs import drawn_desc
from .source import Source

DICTIONARY: tuple[bytes, ...] = ()
MOST = 512  # elements of a tensor: the oracle is slow
INPUTS = ("InputTensor", "IndicesTensor", "UpdatesTensor")


def run(data: bytes) -> str:
    """Dispatch the case that the bytes describe. Return the outcome and the kinds of buffers."""
    source = Source(data)
    compiled = _compiled(source)
    if compiled is None:
        return "rejected"
    buffers = _drawn(source, compiled)
    _check_report(compiled, buffers["IndicesTensor"])
    return _check_dispatch(source, compiled, buffers)


def seeds() -> Iterator[bytes]:
    """Yield inputs at random, the same ones every time."""
    rng = np.random.RandomState(22)
    while True:
        yield rng.bytes(rng.randint(48, 192))


# --- The operator


def _compiled(source: Source) -> Any:
    """Return a small operator that is accepted, or None."""
    for _ in range(4):
        level = source.choice(("6_4", "6_4", "4_1", "3_0"))
        try:
            desc = directml.from_json(json.dumps(drawn_desc(source, sound=True)))
        except ValueError:
            continue
        sizes = [(t.required_bytes, int(np.prod(t.sizes))) for t in desc.tensors.values()]
        if not directml.check(desc, level) and max(sizes) <= (16 * MOST, MOST):
            return directml.Device(level).compile(desc)
    return None


def _drawn(source: Source, compiled: Any) -> dict[str, Given]:
    """Return a buffer for each tensor, with the output's last."""
    rng = np.random.default_rng(source.below(1 << 16))
    buffers: dict[str, Given] = {}
    for name, tensor in compiled.desc.tensors.items():
        needed, within = tensor.required_bytes, None
        content = rng.bytes(needed)
        if name == "IndicesTensor":
            content = _indices(source, rng, compiled.desc, needed)
        if name == "OutputTensor" and source.once_in(4):
            within = buffers[source.choice(tuple(buffers))]
        buffers[name] = drawn_buffer(source, content, needed, within)
    return buffers


def _indices(source: Source, rng: np.random.Generator, desc: Any, needed: int) -> bytes:
    """Return bytes whose items are indices, most of them valid."""
    dtype, largest = desc.indices_tensor.data_type.dtype, max(desc.input_tensor.sizes)
    lowest = -largest if dtype.kind == "i" else 0
    values = rng.integers(lowest, largest, needed // dtype.itemsize + 1).astype(dtype)
    info = np.iinfo(dtype)
    odd = source.choice((0, 0, 1, 3))
    if odd:
        values[::odd] = source.choice((info.max, info.min, largest, 1))
    return values.tobytes()


# --- Checks


def _check_report(compiled: Any, indices: Given) -> None:
    """Check that `index_report` applies the same rules to the buffer of indices."""
    must, may = _faults(compiled, {"IndicesTensor": indices})
    before = indices.memory.copy()
    raised = None
    try:
        compiled.index_report(indices.value)
    except (TypeError, ValueError) as error:
        raised = error
    _check_refusal(compiled, raised, must, may)
    assert (indices.memory == before).all(), f"a report changed {indices.kind}"


def _check_dispatch(source: Source, compiled: Any, buffers: dict[str, Given]) -> str:
    out = buffers["OutputTensor"]
    must, may = _faults(compiled, buffers)
    if not must:
        _add_overlap(compiled, buffers, must, may)
    values = {name: buffer.value for name, buffer in buffers.items()}
    if source.once_in(16):  # updates for a gather, none for a scatter
        values["UpdatesTensor"] = None if "UpdatesTensor" in values else b""
        must.add(TypeError)
    before = {name: buffer.memory.copy() for name, buffer in buffers.items()}
    expected = None if must else _expected(compiled, buffers)
    raised = None
    try:
        compiled.dispatch(**{_argument(name): value for name, value in values.items()})
    except (TypeError, ValueError) as error:
        raised = error
    if raised is None and must:  # keeps objects alive until the error is reported
        for name, buffer in buffers.items():
            buffer.memory[...] = before[name]
    kinds = {name: buffer.kind for name, buffer in buffers.items()}
    _check_refusal(compiled, raised, must, may, kinds)
    for name, buffer in buffers.items():
        written = raised is None and buffer.memory is out.memory
        wanted = expected if written else before[name]
        assert np.array_equal(buffer.memory, wanted), (
            f"{name}: {compiled.desc} on {kinds}, {raised}"
        )
    if raised is None:
        place = " in place" if out.memory is buffers["InputTensor"].memory else ""
        return f"written {out.kind}{place}"
    return f"{type(raised).__name__} {_culprit(compiled, buffers, raised)}"


def _check_refusal(
    compiled: Any, raised: Exception | None, must: set[Any], may: set[Any], kinds: Any = None
) -> None:
    if raised is None:
        assert not must, f"accepted, though one of {must} must come: {compiled.desc} on {kinds}"
        return
    said = f"{raised!r}, one of {must | may} expected: {compiled.desc} on {kinds}"
    assert type(raised) in must | may, said
    text = str(raised)
    assert text.startswith(f"{compiled.desc.operator}: `") and "\n" not in text, said


def _faults(compiled: Any, buffers: dict[str, Given]) -> tuple[set[Any], set[Any]]:
    """Return the exceptions of which one must be raised, and the exceptions that may be raised."""
    must: set[Any] = set()
    may: set[Any] = set()
    for name, buffer in buffers.items():
        if buffer.fits is not True:
            (may if buffer.fits is None else must).add(TypeError)
        if buffer.fits is False:
            continue
        if buffer.size < compiled.desc.tensors[name].required_bytes:
            must.add(ValueError)
        if name == "OutputTensor" and not buffer.writable:
            must.add(ValueError)
    return must, may


def _add_overlap(compiled: Any, buffers: dict[str, Given], must: set[Any], may: set[Any]) -> None:
    """Add the errors that are due if the output overlaps an input that is not in place."""
    out = buffers["OutputTensor"]
    for name, buffer in buffers.items():
        if name == "OutputTensor" or buffer.memory is not out.memory:
            continue
        a, b = (_view(compiled, key, buffers[key], out.memory) for key in (name, "OutputTensor"))
        scatters = compiled.desc.operator.startswith("SCATTER")
        if name == "InputTensor" and scatters and _layout(a) == _layout(b):
            continue
        used = [np.zeros(len(out.memory), bool) for _ in range(2)]
        for key, bits in zip((name, "OutputTensor"), used, strict=True):
            byte_rows(_view(compiled, key, buffers[key], bits), writable=True)[...] = True
        if (used[0] & used[1]).any():
            must.add(ValueError)
        try:
            np.shares_memory(a, b, max_work=10_000)
        except np.exceptions.TooHardError:  # an undecided overlap counts as one
            may.add(ValueError)


def _layout(array: NDArray[Any]) -> tuple[Any, ...]:
    steps = [step for step, size in zip(array.strides, array.shape, strict=True) if size > 1]
    return array.__array_interface__["data"][0], array.shape, steps


def _view(compiled: Any, name: str, buffer: Given, memory: NDArray[Any]) -> NDArray[Any]:
    """Return the meaningful dimensions of a tensor as an array in its memory, or in a copy."""
    tensor, rank = compiled.desc.tensors[name], compiled._lowered.ranks[name]
    dtype = tensor.data_type.dtype
    strides = [step * dtype.itemsize for step in tensor.element_strides]
    first = len(strides) - rank
    return np.ndarray(tensor.sizes[first:], dtype, memory, buffer.start, strides[first:])


def _expected(compiled: Any, buffers: dict[str, Given]) -> NDArray[np.uint8]:
    """Return the expected content of the output's whole memory, computed by the oracle."""
    out, lowered = buffers["OutputTensor"], compiled._lowered
    views = [
        _view(compiled, name, buffers[name], buffers[name].memory)
        for name in INPUTS
        if name in buffers
    ]
    result = getattr(reference, lowered.operator.name)(*views, **lowered.attributes)
    memory = out.memory.copy()
    place = _view(compiled, "OutputTensor", out, memory)
    byte_rows(place, writable=True)[...] = byte_rows(result.reshape(place.shape))
    return memory


def _argument(name: str) -> str:
    return f"{name.removesuffix('Tensor').lower()}_tensor"


def _culprit(compiled: Any, buffers: dict[str, Given], error: Exception) -> str:
    """Return the kind of the buffer that an error reports, as far as the error's type tells."""
    for name, buffer in buffers.items():
        small = buffer.size < compiled.desc.tensors[name].required_bytes
        if (buffer.fits is not True) if isinstance(error, TypeError) else small:
            return buffer.kind
    return "updates" if isinstance(error, TypeError) else "shared or read-only"
