"""The handler of XLA's custom calls under forged frames, called as by the runtime, without JAX.

Each frame fails one check of the handler. Results are between guards, which must not change.
"""

import ctypes
from ctypes import c_void_p

import numpy as np
import pytest

import gatherum
from gatherum._derivatives import elementary
from xla_frames import (
    BFLOAT16,
    BYTE_FLOATS,
    KINDS,
    PACKED,
    Call,
    Extension,
    Metadata,
    MetadataExtension,
    Version,
    handler,
)

DATA, INDICES = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([2, 0])
UPDATES = np.ones((2, 4), np.float32)


def gather_call(data=DATA, indices=INDICES, **attributes):
    plan = gatherum.plan("gather", data, indices, **attributes)
    return Call(plan.program, [data, indices], plan.shape, data.dtype)


def scatter_call():
    plan = gatherum.plan("scatter_slices", DATA, INDICES, UPDATES, reduction="add")
    return Call(plan.program, [DATA, INDICES, UPDATES], plan.shape, np.float32)


def replaced(call, operand, **changes):
    array, type_number, shape = call.operands[operand]
    call.operands[operand] = (
        changes.get("array", array),
        changes.get("type_number", type_number),
        changes.get("shape", shape),
    )  # fmt: skip


def test_right_calls_run():
    call = gather_call()
    assert call.run() is None
    np.testing.assert_array_equal(call.result.view(np.float32).reshape(2, 4), DATA[INDICES])
    call = scatter_call()
    assert call.run() is None
    expected = gatherum.scatter_slices(DATA, INDICES, UPDATES, reduction="add")
    np.testing.assert_array_equal(call.result.view(np.float32).reshape(3, 4), expected)


@pytest.mark.parametrize("name", KINDS)
def test_every_dtype_has_its_number(name):
    data = (np.arange(12) % 2).astype(name)
    call = gather_call(data)
    assert call.run() is None
    np.testing.assert_array_equal(call.result.view(name), data[INDICES])
    for other in set(KINDS.values()) - {KINDS[name]}:
        call = gather_call(data)
        replaced(call, 0, type_number=other)
        call.dtype = other
        assert call.run() == ("INVALID_ARGUMENT", "the data are not of the program's type")
        assert (call.result == 0xA5).all()


def test_types_that_numpy_lacks():
    for numbers, program in (((BFLOAT16,), "bfloat16"), (BYTE_FLOATS, "float8_e5m2")):
        plan = gatherum.plan("gather", ((3,), program), INDICES)
        data = np.arange(3, dtype=np.uint16 if program == "bfloat16" else np.uint8)
        for number in numbers:
            call = Call(plan.program, [data, INDICES], (2,), data.dtype)
            replaced(call, 0, type_number=number)
            call.dtype = number
            assert call.run() is None
            np.testing.assert_array_equal(call.result.view(data.dtype), data[INDICES])


@pytest.mark.parametrize("number", PACKED)
def test_packed_and_unknown_types_are_refused(number):
    for dtype in ("int8", "float8_e5m2"):
        data = np.arange(3, dtype=np.int8)
        plan = gatherum.plan("gather", ((3,), dtype), INDICES)
        call = Call(plan.program, [data, INDICES], (2,), data.dtype)
        replaced(call, 0, type_number=number)
        call.dtype = number
        assert call.run() == ("INVALID_ARGUMENT", "the data are not of the program's type")
        assert (call.result == 0xA5).all()


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                                  "uint64"])  # fmt: skip
def test_indices_have_their_own_type(name):
    call = gather_call(indices=INDICES.astype(name))
    assert call.run() is None
    np.testing.assert_array_equal(call.result.view(np.float32).reshape(2, 4), DATA[INDICES])
    for other in set(KINDS.values()) - {KINDS[name]}:
        call = gather_call(indices=INDICES.astype(name))
        replaced(call, 1, type_number=other)
        assert call.run() == ("INVALID_ARGUMENT", "the indices are not of the program's type")


def test_swapped_indices_are_refused():
    swapped = INDICES.astype(INDICES.dtype.newbyteorder())
    plan = gatherum.plan("gather", DATA, swapped)
    call = Call(plan.program, [DATA, INDICES], plan.shape, np.float32)
    assert call.run() == ("INVALID_ARGUMENT", "the indices are not of the program's type")


def move_to_result(call, operand):
    """Move an operand of a call to the memory of its result."""
    array, _, _ = call.operands[operand]
    place = call.result[: array.nbytes].view(array.dtype).reshape(array.shape)
    place[...] = array
    replaced(call, operand, array=place)


@pytest.mark.parametrize(
    ("call", "operand", "name"),
    [
        (lambda: gather_call(DATA[:2], INDICES // 2), 0, "data"),
        (gather_call, 1, "indices"),
        (scatter_call, 1, "indices"),
        (scatter_call, 2, "updates"),
    ],
)
def test_a_result_over_an_operand_is_refused(call, operand, name):
    ffi_call = call()
    move_to_result(ffi_call, operand)
    before = ffi_call.memory.copy()
    message = f"`out` must not share memory with `{name}`"
    assert ffi_call.run() == ("INVALID_ARGUMENT", message)
    np.testing.assert_array_equal(ffi_call.memory, before)


def test_a_scatter_in_place_runs():
    call = scatter_call()
    move_to_result(call, 0)
    assert call.run() is None
    expected = gatherum.scatter_slices(DATA, INDICES, UPDATES, reduction="add")
    np.testing.assert_array_equal(call.result.view(np.float32).reshape(3, 4), expected)


def sets(name, value):
    """Return a change of a call's shape, type, or kinds of operands."""
    return lambda call: setattr(call, name, value)


def resizes(operand, shape):
    return lambda call: replaced(call, operand, shape=shape)


def gives(name, type_number, value):
    """Return a change of an attribute; `value` computes it from its present words."""
    return lambda call: call.attributes.update(
        {name: (type_number, value(call.attributes[name][1]))}
    )


def drops(name):
    return lambda call: call.attributes.pop(name)


ARRAY, TEXT = 1, 4
FORGED = {
    "a result of another type": (sets("dtype", KINDS["int32"]), "is not of the data's type"),
    "a result of another shape": (sets("shape", (4, 2)), "the program's shape"),
    "a larger result": (sets("shape", (3, 4)), "the program's shape"),
    "a result of lower rank": (sets("shape", (2,)), "the program's shape"),
    "a result of higher rank": (sets("shape", (2, 4, 1)), "the program's shape"),
    "smaller data": (resizes(0, (2, 4)), "smaller than the program"),
    "data of a negative size": (resizes(0, (-3, 4)), "smaller than the program"),
    "data of sizes that overflow": (resizes(0, (2**62, 2**62, 4)), None),
    "fewer indices": (resizes(1, (1,)), "smaller than the program"),
    "data that are no buffer": (sets("operand_types", [2, 1]), "must be buffers"),
    "indices that are no buffer": (sets("operand_types", [1, 2]), "must be buffers"),
    "a result that is no buffer": (sets("result_types", [2]), "must be buffers"),
    "two results": (sets("result_types", [1, 1]), "must be buffers"),
    "no result": (sets("result_types", []), "must be buffers"),
    "no program": (drops("program"), "the attributes"),
    "a program of other words": (
        gives("program", ARRAY, lambda a: (KINDS["uint64"], a[1])), "the attributes",
    ),
    "a program that is text": (gives("program", TEXT, lambda _: "words"), "the attributes"),
    "an empty program": (gives("program", ARRAY, lambda a: (5, a[1][:0])), "no program"),
    "half a program": (gives("program", ARRAY, lambda a: (5, a[1][:20])), "damaged"),
    "a damaged program": (gives("program", ARRAY, lambda a: (5, a[1] ^ (a[1] == 12))), "damaged"),
    "a program of another version": (
        gives("program", ARRAY, lambda a: (5, a[1] + (np.arange(len(a[1])) == 1))), "version",
    ),
    "no fill": (drops("fill"), "the attributes"),
    "a fill of other words": (gives("fill", ARRAY, lambda a: (3, a[1])), "the attributes"),
    "a short fill": (gives("fill", ARRAY, lambda a: (5, a[1][:1])), "the attributes"),
    "a long fill": (gives("fill", ARRAY, lambda _: (5, np.zeros(3, np.int64))), "the attributes"),
    "no sentences": (drops("sentences"), "the attributes"),
    "sentences that are an array": (
        gives("sentences", ARRAY, lambda _: (5, np.zeros(2, np.int64))), "the attributes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_forged_calls_are_refused(name):
    forge, words = FORGED[name]
    call = gather_call()
    forge(call)
    said = call.run()
    if words is None:  # more than the program needs, as far as the handler can tell
        assert said is None
        return
    assert said is not None
    assert said[0] == "INVALID_ARGUMENT"
    assert words in said[1]
    assert (call.result == 0xA5).all()


def test_forged_scatters_are_refused():
    for forge, words in (
        (lambda call: call.operands.pop(), "the operands are not those of the program"),
        (
            lambda call: replaced(call, 2, type_number=KINDS["int32"]),
            "the updates are not of the data's",
        ),
        (lambda call: replaced(call, 2, shape=(1, 4)), "smaller than the program"),
        (lambda call: call.operands.append(call.operands[2]), "two or three operands"),
        (lambda call: call.operand_types.__setitem__(2, 2), "must be buffers"),
        (lambda call: call.operands.__delitem__(slice(1, None)), "two or three operands"),
    ):
        call = scatter_call()
        forge(call)
        call.operand_types = (call.operand_types + [1])[: len(call.operands)]
        code, said = call.run()
        assert code == "INVALID_ARGUMENT"
        assert words in said
        assert (call.result == 0xA5).all()
    call = gather_call()
    call.operands.append((UPDATES, KINDS["float32"], UPDATES.shape))
    call.operand_types.append(1)
    assert call.run() == ("INVALID_ARGUMENT", "the operands are not those of the program")


def gradients_call(reduction="mul"):
    plan = gatherum.plan("scatter_slices", DATA, INDICES, UPDATES, reduction=reduction)
    call = Call(plan.program, [DATA, INDICES, UPDATES, DATA], plan.shape, np.float32)
    call.result_types = [1, 1]  # both have the shape of the data
    return call


@pytest.mark.parametrize("operand", [0, 1, 2, 3, None])
def test_gradients_over_an_operand_are_refused(operand):
    call = gradients_call()
    if operand is None:
        call.second = call.result
    else:
        move_to_result(call, operand)
    before = call.memory.copy()
    code, said = call.run()
    assert code == "INVALID_ARGUMENT"
    assert "must not share memory with" in said
    np.testing.assert_array_equal(call.memory, before)


def test_gradients_are_of_two_results():
    assert gradients_call().run() is None
    for forge, words in (
        (
            lambda call: replaced(call, 3, type_number=KINDS["int32"]),
            "the gradients are not of",
        ),
        (lambda call: replaced(call, 3, shape=(2, 4)), "smaller than the program"),
        (lambda call: replaced(call, 2, shape=(1, 4)), "smaller than the program"),
        (sets("result_types", [1]), "two or three operands"),
        (sets("result_types", [1, 2]), "must be buffers"),
        (sets("operand_types", [1, 1, 1, 2]), "must be buffers"),
        (sets("shape", (2, 4)), "the program's shape"),
    ):
        call = gradients_call()
        forge(call)
        code, said = call.run()
        assert code == "INVALID_ARGUMENT"
        assert words in said
        assert (call.result == 0xA5).all()
    assert gradients_call("add").run() == (
        "INVALID_ARGUMENT", "there are no gradients of this program",
    )  # fmt: skip


def test_fill_values_and_messages():
    indices = np.array([2, 7])
    call = gather_call(indices=indices)
    assert call.run() == ("OUT_OF_RANGE", "index 7 at (1)")
    plan = gatherum.plan("gather", DATA, indices, mode="fill")
    call = Call(plan.program, [DATA, indices], (2, 4), np.float32, np.float32(2.5).tobytes())
    assert call.run() is None
    assert call.result.view(np.float32).reshape(2, 4)[1].tolist() == [2.5] * 4


@pytest.mark.parametrize(("name", "value", "told"), [
    ("int8", -128, "-128"), ("uint8", 255, "255"), ("uint16", 65535, "65535"),
    ("uint32", 2**32 - 1, str(2**32 - 1)), ("uint64", 2**64 - 1, str(2**64 - 1)),
    ("int64", -(2**63), str(-(2**63))),
])  # fmt: skip
def test_the_message_names_the_value(name, value, told):
    call = gather_call(indices=np.array([0, value], name))
    assert call.run() == ("OUT_OF_RANGE", f"index {told} at (1)")


def test_the_message_names_the_position():
    indices = np.zeros((3, 2, 5), int)
    indices[1, 1, 3] = indices[2, 0, 0] = 9
    for sentences, told in (
        ("changed\n% (%, %, %)", "9 (1, 1, 3)"),
        ("changed\n% (%)", "9 (0)"),
        ("changed\n% (%, %, %, %)", "9 (1, 1, 3, %)"),
        ("changed\n", ""),
        ("", ""),
    ):
        call = gather_call(indices=indices)
        call.attributes["sentences"] = (TEXT, sentences)
        assert call.run() == ("OUT_OF_RANGE", told)
    tuples = np.zeros((3, 2), int)
    tuples[2, 1] = 8
    plan = gatherum.plan("gather_nd", DATA, tuples)
    call = Call(plan.program, [DATA, tuples], plan.shape, np.float32)
    call.attributes["sentences"] = (TEXT, "changed\nfirst % (%)\nsecond % (%)")
    assert call.run() == ("OUT_OF_RANGE", "second 8 (2)")


def test_the_question_of_the_runtime():
    """The answer is version 0.1, for any position of the query in the chain; nothing else runs."""
    metadata = Metadata(ctypes.sizeof(Metadata), Version(0, None, 9, 9), 7)
    asked = MetadataExtension(
        Extension(ctypes.sizeof(MetadataExtension), 1, None), ctypes.pointer(metadata)
    )
    other = Extension(ctypes.sizeof(Extension), 2, ctypes.cast(ctypes.pointer(asked), c_void_p))
    for first in (asked, other):
        metadata.version.major = metadata.version.minor = 9
        call = gather_call()
        frame = call.frame()
        frame.extension = ctypes.cast(ctypes.pointer(first), c_void_p).value
        assert not handler(ctypes.byref(frame))
        assert (metadata.version.major, metadata.version.minor, metadata.traits) == (0, 1, 7)
        assert not call.told
        assert (call.result == 0xA5).all()


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_other_stages_do_nothing(stage):
    call = gather_call()
    call.stage = stage
    assert call.run() is None
    assert (call.result == 0xA5).all()


def test_programs_that_share_a_place():
    """More programs than the cache holds, twice: each call runs the right one."""
    table = np.arange(700.0)
    for _ in range(2):
        for n in range(1, 700):
            indices = np.arange(n, 0, -1) - 1
            plan = gatherum.plan("gather", table, indices)
            call = Call(plan.program, [table, indices], (n,), np.float64)
            assert call.run() is None
            assert call.result.view(np.float64)[0] == n - 1


def mapping_call(function="exp", dtype="float32"):
    call = Call(b"", [np.linspace(0.5, 2, 12).astype(dtype).reshape(3, 4)], (3, 4), dtype)
    call.attributes = {"function": (4, function)}
    return call


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("function", ["exp", "log"])
def test_exp_and_log(function, dtype):
    call = mapping_call(function, dtype)
    assert call.run() is None
    expected = getattr(elementary, function)(call.operands[0][0])
    assert call.result.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attributes": {"function": (4, "sin")}}, "the function is exp or log, of floats"),
        ({"attributes": {"function": (4, "")}}, "the function is exp or log, of floats"),
        ({"dtype": KINDS["float64"]}, "the result is not of the operand's type and shape"),
        ({"shape": (4, 3)}, "the result is not of the operand's type and shape"),
        ({"shape": (12,)}, "the result is not of the operand's type and shape"),
        ({"operand_types": [0]}, "exp and log have one operand and one result, both buffers"),
        ({"result_types": [0]}, "exp and log have one operand and one result, both buffers"),
        ({"result_types": [1, 1]}, "exp and log have one operand and one result, both buffers"),
    ],
)
def test_wrong_calls_of_exp_and_log(change, message):
    call = mapping_call()
    vars(call).update(change)
    assert call.run() == ("INVALID_ARGUMENT", message)


@pytest.mark.parametrize(
    "type_number", [KINDS["int32"], KINDS["bool"], KINDS["complex64"], 19, 0, 99]
)
def test_exp_and_log_take_floats(type_number):
    call = mapping_call()
    replaced(call, 0, type_number=type_number)
    call.dtype = type_number
    assert call.run() == ("INVALID_ARGUMENT", "the function is exp or log, of floats")


GROUPS = np.array([0, 1, 0, 9, 1, -1])


def cumulative_call(function="add", dtype="float32", groups=GROUPS, recurs=False):
    values = np.arange(1, 7).astype(dtype)
    operands = [values, groups, values] if recurs else [values, groups]
    call = Call(b"", operands, (6,), dtype)
    call.attributes = {
        "function": (4, function),
        "group_count": (1, (KINDS["int64"], np.array([2]))),
    }
    return call


@pytest.mark.parametrize("groups", [GROUPS, GROUPS.astype(np.int32)], ids=["int64", "int32"])
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("add", [1, 2, 4, 0, 7, 0]),
        ("mul", [1, 2, 3, 0, 10, 0]),
        ("max", [1, 2, 3, 0, 5, 0]),
        ("min", [1, 2, 1, 0, 2, 0]),
        ("previous", [0, 0, 1, 0, 2, 0]),
        ("recurrence", [1, 2, 6, 0, 15, 0]),
    ],
)
def test_cumulative_functions(function, expected, groups):
    call = cumulative_call(function, groups=groups, recurs=function == "recurrence")
    assert call.run() is None
    assert call.result.view(np.float32).tolist() == expected


NO_FUNCTION = "there is no such function of the values of groups"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (cumulative_call("sum"), NO_FUNCTION),
        (cumulative_call("none"), NO_FUNCTION),
        (cumulative_call("mean"), NO_FUNCTION),
        (cumulative_call("fsum"), NO_FUNCTION),
        (cumulative_call("recurrence"), NO_FUNCTION),
        (cumulative_call("previous", "float16"), NO_FUNCTION),
        (cumulative_call("max", "complex64"), NO_FUNCTION),
        (cumulative_call(groups=GROUPS.astype(np.uint32)), "the groups are not int32 or int64"),
        (cumulative_call(groups=GROUPS.astype(np.int16)), "the groups are not int32 or int64"),
        (cumulative_call(groups=GROUPS[:5]),
         "the operands and the result are not of one type and size"),
    ],
)  # fmt: skip
def test_wrong_cumulative_functions(call, message):
    assert call.run() == ("INVALID_ARGUMENT", message)
    assert (call.result == 0xA5).all()


@pytest.mark.parametrize(
    "change", [{"operand_types": [1, 0]}, {"result_types": [0]}, {"result_types": [1, 1]}]
)
def test_a_cumulative_function_has_buffers(change):
    call = cumulative_call()
    vars(call).update(change)
    assert call.run() == (
        "INVALID_ARGUMENT",
        "a cumulative function has two or three operands and one result, all buffers",
    )
