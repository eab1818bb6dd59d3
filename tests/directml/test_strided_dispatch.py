"""`dispatch` on strided buffers, compared with the functional API byte for byte."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import gatherum
from gatherum.directml import (
    BufferTensorDesc,
    Device,
    GatherElementsOperatorDesc,
    GatherNd1OperatorDesc,
    GatherNdOperatorDesc,
    GatherOperatorDesc,
    ScatterNdOperatorDesc,
    ScatterOperatorDesc,
    check,
)

DATA_TYPES = [
    "FLOAT64",
    "FLOAT32",
    "FLOAT16",
    "INT64",
    "INT32",
    "INT16",
    "INT8",
    "UINT64",
    "UINT32",
    "UINT16",
    "UINT8",
]
INDEX_TYPES = ["INT64", "INT32", "UINT64", "UINT32"]
OPERATORS = ["GATHER", "GATHER_ELEMENTS", "GATHER_ND", "GATHER_ND1", "SCATTER", "SCATTER_ND"]
SIZE = st.integers(1, 3)


def offsets(tensor):
    """Return the offset of each element, in elements, in row-major order."""
    strides = tensor.strides or [
        int(np.prod(tensor.sizes[i + 1 :])) for i in range(len(tensor.sizes))
    ]
    return [
        sum(i * s for i, s in zip(position, strides, strict=True))
        for position in itertools.product(*map(range, tensor.sizes))
    ]


@st.composite
def strides(draw, sizes, own_places):
    """Draw strides for an output, whose elements are distinct, or for any input."""
    if draw(st.booleans()):
        return None
    if not own_places and draw(st.booleans()):
        return tuple(draw(st.integers(0, 4)) for _ in sizes)  # broadcast, overlapping
    chosen, extent = [0] * len(sizes), 1
    for dimension in draw(st.permutations(range(len(sizes)))):
        stride = extent + draw(st.integers(0, 2))
        chosen[dimension] = stride
        if sizes[dimension] == 1:
            chosen[dimension] = draw(st.integers(0, 99))
        else:
            extent = stride * (sizes[dimension] - 1) + extent
    return tuple(chosen)


@st.composite
def tensors(draw, data_type, sizes, own_places=False):
    layout = draw(strides(sizes, own_places))
    packed = BufferTensorDesc(data_type, sizes, layout)
    more = draw(st.sampled_from((0, 0, 1, 7)))
    return BufferTensorDesc(data_type, sizes, layout, packed.total_tensor_size_in_bytes + more)


def sizes_of(draw, count):
    return tuple(draw(SIZE) for _ in range(count))


@st.composite
def cases(draw):
    """Draw an operator desc, and the same call on the functional API as a function of arrays."""
    operator = draw(st.sampled_from(OPERATORS))
    data_type = draw(st.sampled_from(DATA_TYPES))
    index_type = draw(st.sampled_from(INDEX_TYPES))
    d = draw(st.integers(1, 5))
    make = {
        "GATHER": gather_case,
        "GATHER_ELEMENTS": elements_case,
        "SCATTER": elements_case,
    }.get(operator, nd_case)
    return make(draw, operator, data_type, index_type, d)


def gather_case(draw, operator, data_type, index_type, d):
    axis = draw(st.integers(0, d - 1))
    n = draw(st.integers(0, axis + 1))
    cropped = max(n - 1, 0)
    data = (1,) * cropped + sizes_of(draw, d - cropped)
    indices = (1,) * (d - n) + sizes_of(draw, n)
    output = data[cropped:axis] + indices[d - n :] + data[axis + 1 :]
    output = (1,) * (d - len(output)) + output
    desc = GatherOperatorDesc(
        draw(tensors(data_type, data)),
        draw(tensors(index_type, indices)),
        draw(tensors(data_type, output, own_places=True)),
        axis,
        n,
    )

    def call(x, i):
        flat_i = i.reshape(indices[d - n :])
        y = gatherum.gather(x.reshape(data[cropped:]), flat_i, axis - cropped, **clip(i))
        return y.reshape(output)

    return desc, call


def elements_case(draw, operator, data_type, index_type, d):
    axis = draw(st.integers(0, d - 1))
    data = sizes_of(draw, d)
    indices = (*data[:axis], draw(SIZE), *data[axis + 1 :])
    x, i = draw(tensors(data_type, data)), draw(tensors(index_type, indices))
    if operator == "GATHER_ELEMENTS":
        out = draw(tensors(data_type, indices, own_places=True))
        desc = GatherElementsOperatorDesc(x, i, out, axis)
        return desc, lambda x, i: gatherum.gather_elements(x, i, axis, **clip(i))
    out = draw(tensors(data_type, data, own_places=True))
    desc = ScatterOperatorDesc(x, i, draw(tensors(data_type, indices)), out, axis)
    return desc, lambda x, i, u: gatherum.scatter_elements(x, i, u, axis, **drop(i))


def nd_case(draw, operator, data_type, index_type, d):
    r, q = draw(st.integers(1, d)), draw(st.integers(1, d))
    b = draw(st.integers(0, min(r, q) - 1)) if operator == "GATHER_ND1" else 0
    fewest = max(1, q - 1 + r - b - d)  # so that the result has at most d dimensions
    k = draw(st.integers(min(fewest, r - b), r - b))
    if q - 1 + r - b - k > d:
        q = d + 1 - (r - b - k)
    data = (1,) * (d - r) + sizes_of(draw, r)
    tuples = data[d - r : d - r + b] + sizes_of(draw, q - 1 - b)
    indices = (1,) * (d - q) + tuples + (k,)
    part = tuples + data[d - r + b + k :]
    picked = (1,) * (d - len(part)) + part
    x, i = draw(tensors(data_type, data)), draw(tensors(index_type, indices))

    def cropped(x, i):
        return x.reshape(data[d - r :]), i.reshape(indices[d - q :])

    if operator == "SCATTER_ND":
        out = draw(tensors(data_type, data, own_places=True))
        desc = ScatterNdOperatorDesc(x, i, draw(tensors(data_type, picked)), out, r, q)
        return desc, lambda x, i, u: gatherum.scatter_nd(
            *cropped(x, i), u.reshape(part), **drop(i)
        ).reshape(data)
    out = draw(tensors(data_type, picked, own_places=True))
    if operator == "GATHER_ND":
        desc = GatherNdOperatorDesc(x, i, out, r, q)
    else:
        desc = GatherNd1OperatorDesc(x, i, out, r, q, b)
    return desc, lambda x, i: gatherum.gather_nd(*cropped(x, i), batch_dims=b, **clip(i)).reshape(
        picked
    )


def clip(indices):
    return {"mode": "clip", "negative": indices.dtype.kind == "i"}


def drop(indices):
    return {"mode": "drop", "negative": indices.dtype.kind == "i"}


def filled_buffer(draw, name, tensor):
    """Return more bytes than needed, at an unaligned address, with readable indices."""
    itemsize = tensor.data_type.dtype.itemsize
    nbytes = tensor.total_tensor_size_in_bytes + draw(st.integers(0, 9))
    buffer = bytearray(draw(st.binary(min_size=nbytes, max_size=nbytes)))
    if name == "IndicesTensor":
        low = -5 if tensor.data_type.signed else 0
        huge = np.iinfo(tensor.data_type.dtype).max
        value = st.one_of(st.integers(low, 5), st.just(huge))
        for place in offsets(tensor):
            number = np.array(draw(value), tensor.data_type.dtype)
            buffer[place * itemsize : (place + 1) * itemsize] = number.tobytes()
    return memoryview(bytearray(b"\0") * draw(st.integers(0, 3)) + buffer), nbytes


def elements_of(tensor, buffer):
    """Read a tensor element by element into a packed array."""
    itemsize = tensor.data_type.dtype.itemsize
    items = [bytes(buffer[p * itemsize : (p + 1) * itemsize]) for p in offsets(tensor)]
    return np.frombuffer(b"".join(items), tensor.data_type.dtype).reshape(tensor.sizes)


@settings(max_examples=300, deadline=None)
@given(case=cases(), data=st.data())
def test_dispatch_is_the_functional_api_through_strides(case, data):
    desc, call = case
    assert check(desc) == []
    buffers, before = {}, {}
    for name, tensor in desc.tensors.items():
        whole, nbytes = filled_buffer(data.draw, name, tensor)
        part = whole[len(whole) - nbytes :]
        buffers[name], before[name] = part, bytes(whole)
        buffers[name, "whole"] = whole
    inputs = [
        elements_of(tensor, buffers[name])
        for name, tensor in desc.tensors.items()
        if name != "OutputTensor"
    ]
    expected = call(*inputs)

    compiled = Device().compile(desc)
    names = ("InputTensor", "IndicesTensor", "UpdatesTensor", "OutputTensor")
    keywords = ("input_tensor", "indices_tensor", "updates_tensor", "output_tensor")
    operands = {k: buffers[n] for n, k in zip(names, keywords, strict=True) if n in buffers}
    for keyword in operands.keys() - {"output_tensor"}:
        operands[keyword] = operands[keyword].toreadonly()
    compiled.dispatch(**operands)

    output = desc.output_tensor
    itemsize = output.data_type.dtype.itemsize
    wanted = bytearray(before["OutputTensor"])
    first = len(wanted) - len(buffers["OutputTensor"])
    for place, item in zip(offsets(output), expected.reshape(-1), strict=True):
        at = first + place * itemsize
        wanted[at : at + itemsize] = item.tobytes()
    assert bytes(buffers["OutputTensor", "whole"]) == bytes(wanted)
    for name in desc.tensors.keys() - {"OutputTensor"}:
        assert bytes(buffers[name, "whole"]) == before[name]
    result = compiled(*inputs)
    assert result.dtype == expected.dtype and result.shape == expected.shape
    assert result.tobytes() == expected.tobytes()


@settings(max_examples=100, deadline=None)
@given(case=cases().filter(lambda case: case[0].operator.startswith("SCATTER")), data=st.data())
def test_a_scatter_in_place_is_a_scatter(case, data):
    desc, call = case
    same = type(desc)(
        desc.output_tensor,
        desc.indices_tensor,
        desc.updates_tensor,
        desc.output_tensor,
        *[getattr(desc, name) for name in list(desc.field_names().values())[4:]],
    )
    target, _ = filled_buffer(data.draw, "InputTensor", same.input_tensor)
    target = memoryview(bytearray(target))
    indices, _ = filled_buffer(data.draw, "IndicesTensor", same.indices_tensor)
    updates, _ = filled_buffer(data.draw, "UpdatesTensor", same.updates_tensor)
    # the bytearray in filled_buffer may start late; use the tail that belongs to the tensors
    indices = indices[len(indices) - same.indices_tensor.total_tensor_size_in_bytes :]
    updates = updates[len(updates) - same.updates_tensor.total_tensor_size_in_bytes :]
    for place in offsets(same.indices_tensor):
        size = same.indices_tensor.data_type.dtype.itemsize
        indices[place * size : (place + 1) * size] = bytes([place % 4]) + bytes(size - 1)
    inputs = [
        elements_of(tensor, buffer)
        for tensor, buffer in zip(same.tensors.values(), (target, indices, updates), strict=False)
    ]
    expected = call(*inputs)
    wanted = bytearray(target)
    size = same.output_tensor.data_type.dtype.itemsize
    for place, item in zip(offsets(same.output_tensor), expected.reshape(-1), strict=True):
        wanted[place * size : (place + 1) * size] = item.tobytes()
    Device().compile(same).dispatch(
        input_tensor=target, indices_tensor=indices, updates_tensor=updates, output_tensor=target
    )
    assert bytes(target) == bytes(wanted)
