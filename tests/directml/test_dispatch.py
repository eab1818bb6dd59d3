"""`dispatch` and calls: invalid indices, unsuitable buffers, shared memory."""

import numpy as np
import pytest

from gatherum.directml import (
    BufferTensorDesc,
    Device,
    GatherOperatorDesc,
    ScatterOperatorDesc,
)


def f32(*sizes, strides=None):
    return BufferTensorDesc("FLOAT32", sizes, strides)


def gather_five(index_type, level="6_4", d=1):
    one = (1,) * (d - 1)
    desc = GatherOperatorDesc(
        f32(*one, 4), BufferTensorDesc(index_type, (*one, 5)), f32(*one, 5), d - 1, 1
    )
    return Device(level).compile(desc)


@pytest.mark.parametrize(
    ("level", "index_type", "indices", "answer"),
    [
        ("3_0", "INT32", [-1, -4, -5, 4, 2**31 - 1], [13, 10, 10, 13, 13]),
        ("6_4", "INT64", [-(2**63), 0, 3, 2**63 - 1, -2], [10, 10, 13, 13, 12]),
        ("6_4", "UINT64", [2**64 - 1, 2**63, 0, 4, 1], [13, 13, 10, 13, 11]),
        ("2_1", "UINT32", [2**32 - 1, 3, 2, 1, 4], [13, 13, 12, 11, 13]),
    ],
)
def test_invalid_reads_are_clamped(level, index_type, indices, answer):
    compiled = gather_five(index_type, level, 4)
    dtype = np.dtype(index_type.lower())
    result = compiled(
        np.float32([10, 11, 12, 13]).reshape(1, 1, 1, 4),
        np.array(indices, dtype).reshape(1, 1, 1, 5),
    )
    assert result.tolist() == [[[answer]]]


def test_invalid_writes_are_dropped_and_the_last_write_stays():
    desc = ScatterOperatorDesc(f32(4), BufferTensorDesc("INT32", (5,)), f32(5), f32(4), 0)
    result = Device().compile(desc)([10, 11, 12, 13], [4, -5, 1, -3, 3], [1, 2, 3, 4, 5])
    assert result.tolist() == [10, 4, 12, 5]


def test_index_report_counts_invalid_and_duplicate_entries():
    compiled = gather_five("INT32")
    report = compiled.index_report(np.int32([3, 4, -1, -5, 0]))
    assert (report.entries, report.invalid, report.duplicates) == (5, 2, 1)
    # The same values as an unsigned type are invalid; they do not count from the end.
    unsigned = gather_five("UINT32").index_report(np.int32([3, 4, -1, -5, 0]))
    assert (unsigned.entries, unsigned.invalid, unsigned.duplicates) == (5, 3, 0)


BUFFERS = {
    "input_tensor": np.float32([1, 2, 3, 4]),
    "indices_tensor": np.uint32([3, 2, 1, 0, 0]),
}


def test_any_contiguous_buffer_will_do():
    out = memoryview(bytearray(20)).cast("f")
    gather_five("UINT32").dispatch(
        input_tensor=BUFFERS["input_tensor"].tobytes(),
        indices_tensor=memoryview(BUFFERS["indices_tensor"]),
        output_tensor=out,
    )
    assert out.tolist() == [4, 3, 2, 1, 1]


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        (
            {"output_tensor": bytearray(19)},
            ValueError,
            "GATHER: `OutputTensor` needs a buffer of 20 bytes, got 19",
        ),
        (
            {"input_tensor": bytes(15)},
            ValueError,
            "GATHER: `InputTensor` needs a buffer of 16 bytes, got 15",
        ),
        (
            {"output_tensor": bytes(20)},
            ValueError,
            "GATHER: `OutputTensor` must be writable, got a read-only buffer",
        ),
        (
            {"updates_tensor": bytes(20)},
            TypeError,
            "GATHER: `UpdatesTensor` must be absent: the operator has none",
        ),
        (
            {"input_tensor": [1, 2, 3, 4]},
            TypeError,
            "GATHER: `InputTensor` must be a contiguous buffer, got list (memoryview: a "
            "bytes-like object is required, not 'list')",
        ),
        (
            {"input_tensor": np.zeros(8, np.float32)[::2]},
            TypeError,
            "GATHER: `InputTensor` must be a contiguous buffer, got ndarray (memoryview: casts "
            "are restricted to C-contiguous views)",
        ),
    ],
)
def test_unfit_buffers(changed, error, message):
    operands = {**BUFFERS, "output_tensor": bytearray(20), **changed}
    with pytest.raises(error) as raised:
        gather_five("UINT32").dispatch(**operands)
    assert str(raised.value) == message


def test_a_scatter_needs_updates():
    desc = ScatterOperatorDesc(f32(4), BufferTensorDesc("UINT32", (4,)), f32(4), f32(4), 0)
    with pytest.raises(TypeError, match=r"^SCATTER: `UpdatesTensor` is missing$"):
        Device().compile(desc)(np.zeros(4, np.float32), np.zeros(4, np.uint32))


def test_a_buffer_needs_the_total_size_but_not_rounded_up_to_four():
    three = BufferTensorDesc("FLOAT16", (3,))
    assert (three.total_tensor_size_in_bytes, three.required_bytes) == (8, 6)
    roomy = BufferTensorDesc("FLOAT16", (3,), total_tensor_size_in_bytes=64)
    assert roomy.required_bytes == 64
    desc = GatherOperatorDesc(roomy, BufferTensorDesc("UINT32", (3,)), three, 0, 1)
    operands = {"indices_tensor": np.uint32([2, 1, 0]), "output_tensor": np.zeros(3, np.float16)}
    with pytest.raises(ValueError, match=r"`InputTensor` needs a buffer of 64 bytes, got 63$"):
        Device().compile(desc).dispatch(input_tensor=bytes(63), **operands)
    data = np.arange(32, dtype=np.float16)
    Device().compile(desc).dispatch(input_tensor=data, **operands)
    assert operands["output_tensor"].tolist() == [2, 1, 0]


def test_an_output_shares_no_memory_with_an_input():
    memory = np.zeros(16, np.float32)
    operands = {**BUFFERS, "input_tensor": memory[:4], "output_tensor": memory[3:8]}
    with pytest.raises(ValueError) as raised:
        gather_five("UINT32").dispatch(**operands)
    assert str(raised.value) == "GATHER: `OutputTensor` must share no memory with `InputTensor`"
    operands["output_tensor"] = memory[4:9]
    gather_five("UINT32").dispatch(**operands)


def test_interleaved_tensors_of_one_buffer_share_nothing():
    memory = np.arange(8, dtype=np.float32)
    spread = f32(4, strides=(2,))
    desc = GatherOperatorDesc(spread, BufferTensorDesc("UINT32", (4,)), spread, 0, 1)
    Device().compile(desc).dispatch(
        input_tensor=memory, indices_tensor=np.uint32([3, 2, 1, 0]), output_tensor=memory[1:]
    )
    assert memory.tolist() == [0, 6, 2, 4, 4, 2, 6, 0]


@pytest.mark.parametrize("shift", [1, 2])
def test_in_place_is_exactly_in_place(shift):
    memory = np.zeros(16, np.float32)
    desc = ScatterOperatorDesc(f32(4), BufferTensorDesc("UINT32", (4,)), f32(4), f32(4), 0)
    compiled = Device().compile(desc)
    operands = {"indices_tensor": np.uint32([3, 2, 1, 0]), "updates_tensor": np.ones(4, np.float32)}
    with pytest.raises(ValueError) as raised:
        compiled.dispatch(input_tensor=memory, output_tensor=memory[shift:], **operands)
    assert str(raised.value) == (
        "SCATTER: `OutputTensor` must share no memory with `InputTensor` other than exactly its own"
    )
    with pytest.raises(ValueError, match=r"must share no memory with `UpdatesTensor`$"):
        compiled.dispatch(
            input_tensor=memory, output_tensor=memory, **operands | {"updates_tensor": memory[2:]}
        )
    assert not memory.any()


def test_a_gather_is_never_in_place():
    memory = np.float32([1, 2, 3, 4])
    desc = GatherOperatorDesc(f32(4), BufferTensorDesc("UINT32", (4,)), f32(4), 0, 1)
    with pytest.raises(ValueError) as raised:
        Device().compile(desc).dispatch(
            input_tensor=memory, indices_tensor=np.uint32([3, 2, 1, 0]), output_tensor=memory
        )
    assert str(raised.value) == "GATHER: `OutputTensor` must share no memory with `InputTensor`"
    assert memory.tolist() == [1, 2, 3, 4]


def test_in_place_does_not_mind_how_a_size_of_1_strides():
    memory = np.float32([1, 2, 3, 4])
    desc = ScatterOperatorDesc(
        f32(1, 4, strides=(0, 1)),
        BufferTensorDesc("UINT32", (1, 1)),
        f32(1, 1),
        f32(1, 4, strides=(99, 1)),
        1,
    )
    Device().compile(desc).dispatch(
        input_tensor=memoryview(memory).toreadonly(),
        indices_tensor=np.uint32([2]),
        updates_tensor=np.float32([9]),
        output_tensor=memory,
    )
    assert memory.tolist() == [1, 2, 9, 4]


def test_arrays_are_of_the_sizes_and_types_of_the_desc():
    compiled = gather_five("UINT32")
    data, indices = np.zeros(4, np.float32), np.zeros(5, np.uint32)
    with pytest.raises(ValueError) as raised:
        compiled(data[:3], indices)
    assert str(raised.value) == "GATHER: `InputTensor` must have the shape {4}, got {3}"
    with pytest.raises(TypeError) as raised:
        compiled(data, indices.astype(np.int64))
    assert str(raised.value) == (
        "GATHER: `IndicesTensor` must have dtype uint32 (UINT32), got int64"
    )
    with pytest.raises(ValueError, match=r"^GATHER: `IndicesTensor` has a number that UINT32"):
        compiled(data, [0, 0, 0, 0, -1])
    with pytest.raises(TypeError, match=r"^GATHER: `IndicesTensor` must have dtype uint32"):
        compiled(data, [0.0] * 5)


def test_strided_arrays_are_read_as_they_are():
    compiled = gather_five("UINT32")
    data = np.arange(8, dtype=np.float32)[::-2]
    indices = np.arange(10, dtype=np.uint32)[::2]
    assert compiled(data, indices).tolist() == [7, 3, 1, 1, 1]
