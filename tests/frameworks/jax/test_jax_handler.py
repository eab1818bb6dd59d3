"""The handler behind the calls: forged calls raise, and nothing is written."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="install JAX: pip install jax")
import jax.numpy as jnp  # noqa: E402

import gatherum.jax  # noqa: E402
from gatherum.jax.primitives import TARGET  # noqa: E402

FILL = np.zeros(2, np.int64)
DATA, INDICES = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([0, 2])


def words(*call, **attributes):
    return np.frombuffer(bytes(gatherum.plan(*call, **attributes).program), np.int64)


GATHER = words("gather", ((3, 4), "f4"), ((2,), "i8"))
SCATTER = words("scatter_slices", ((3, 4), "f4"), ((2,), "i8"), ((2, 4), "f4"), reduction="add")


def run(shape, *operands, dtype=np.float32, **attributes):
    options = {"program": GATHER, "fill": FILL, "sentences": "changed\nindex % at (%)"} | attributes
    options = {name: value for name, value in options.items() if value is not None}
    out = jax.ShapeDtypeStruct(shape, dtype)
    call = jax.ffi.ffi_call(TARGET, out)
    return jax.jit(lambda *each: call(*each, **options))(*operands).block_until_ready()


def test_the_right_call_runs():
    np.testing.assert_array_equal(run((2, 4), DATA, INDICES), DATA[INDICES])


damaged = GATHER.copy()
damaged[5] ^= 1
newer = GATHER.copy()
newer[1] += 1
FORGED = {
    "another result's shape": ((4, 2), (DATA, INDICES), {}, "the program's shape"),
    "a larger result": ((3, 4), (DATA, INDICES), {}, "the program's shape"),
    "a result of another rank": ((8,), (DATA, INDICES), {}, "the program's shape"),
    "a result of another type": ((2, 4), (DATA, INDICES), {"dtype": np.int32}, "the data's type"),
    "smaller data": ((2, 4), (DATA[:2], INDICES), {}, "smaller than the program"),
    "data of another type": ((2, 4), (DATA.view(np.int32), INDICES), {"dtype": np.int32},
                             "the program's type"),
    "wider data": ((2, 4), (DATA.astype(np.float64), INDICES), {"dtype": np.float64},
                   "the program's type"),
    "fewer indices": ((2, 4), (DATA, INDICES[:1]), {}, "smaller than the program"),
    "indices of another width": ((2, 4), (DATA, INDICES.astype(np.int32)), {},
                                 "the program's type"),
    "unsigned indices": ((2, 4), (DATA, INDICES.astype(np.uint64)), {}, "the program's type"),
    "indices that are floats": ((2, 4), (DATA, INDICES.astype(float)), {}, "the program's type"),
    "updates for a gather": ((2, 4), (DATA, INDICES, DATA[:2]), {}, "those of the program"),
    "no updates for a scatter": ((3, 4), (DATA, INDICES), {"program": SCATTER},
                                 "those of the program"),
    "fewer updates": ((3, 4), (DATA, INDICES, DATA[:1]), {"program": SCATTER},
                      "smaller than the program"),
    "updates of another type": ((3, 4), (DATA, INDICES, DATA[:2].view(np.int32)),
                                {"program": SCATTER}, "the data's type"),
    "one operand": ((3, 4), (DATA,), {}, "two or three operands"),
    "four operands": ((3, 4), (DATA,) * 4, {}, "two or three operands"),
    "no program": ((2, 4), (DATA, INDICES), {"program": None}, "attributes"),
    "an empty program": ((2, 4), (DATA, INDICES), {"program": GATHER[:0]}, "no program"),
    "a program of other words": ((2, 4), (DATA, INDICES), {"program": GATHER.astype(np.int32)},
                                 "attributes"),
    "half a program": ((2, 4), (DATA, INDICES), {"program": GATHER[:20]}, "damaged"),
    "a damaged program": ((2, 4), (DATA, INDICES), {"program": damaged}, "damaged"),
    "another version": ((2, 4), (DATA, INDICES), {"program": newer}, "another version"),
    "no fill": ((2, 4), (DATA, INDICES), {"fill": None}, "attributes"),
    "a short fill": ((2, 4), (DATA, INDICES), {"fill": FILL[:1]}, "attributes"),
    "no sentences": ((2, 4), (DATA, INDICES), {"sentences": None}, "attributes"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_forged_calls_are_refused(name):
    shape, operands, attributes, words_in = FORGED[name]
    with pytest.raises((RuntimeError, ValueError), match=words_in):
        run(shape, *operands, **attributes)
    test_the_right_call_runs()


@pytest.mark.parametrize(
    "sentences", ["", "changed", "changed\n", "changed\nno place", "%\n%%%%%%"]
)
def test_sentences_may_be_anything(sentences):
    with pytest.raises((RuntimeError, ValueError), match="OUT_OF_RANGE"):
        run((2, 4), DATA, np.array([0, 7]), sentences=sentences)


def test_packed_buffers_are_refused_by_the_handler_too():
    if not hasattr(jnp, "int4"):
        pytest.skip("this JAX has no int4")
    program = words("gather", ((3, 4), "i1"), ((2,), "i8"))
    with pytest.raises((RuntimeError, ValueError), match="the program's type"):
        run((2, 4), jnp.zeros((3, 4), "int4"), INDICES, dtype=jnp.int4, program=program)


def test_more_programs_than_are_kept():
    table = np.arange(600.0)
    for n in range(1, 600, 2):
        program = words("gather", ((600,), "f8"), ((n,), "i8"))
        if n % 50 == 1:
            result = run((n,), table, np.arange(n), dtype=np.float64, program=program)
            np.testing.assert_array_equal(result, table[:n])
