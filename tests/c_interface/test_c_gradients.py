"""Gradients of scatters through the C interface, without PyTorch, compared with plain loops."""

from ctypes import byref, c_void_p

import numpy as np
import pytest

import c_calls as c
import gatherum

pytestmark = c.NEEDS_LIBRARY
INVALID_INDEX = 1
NAMES = ("indices", "data", "updates", "result", "gradient", "of_data", "of_updates")


def _status(core, program, arrays, cut=None, null=None):
    """Differentiate. The operand `cut` lacks a byte, and `null` has no address."""
    operands, error = c.Gradients(), c.Error()
    for name, array in arrays.items():
        if array is not None:
            start, before, behind = c.memory_of(array)
            start = None if name == null else start
            setattr(operands, name, c.Buffer(start, before, behind - (name == cut)))
    status = core.gatherum_differentiate(program, byref(operands), c_void_p(), byref(error))
    return status, error


def _arrays(reduction, include_self, dtype="float32", shape=(6, 5), count=40, mode="raise"):
    """Make the operands of a scatter of rows, with its result and memory for its gradients."""
    generator = np.random.default_rng(7)
    data, gradient, updates = (
        (generator.integers(-2, 3, (n, shape[1])) / 2).astype(dtype)
        for n in (shape[0], shape[0], count)
    )
    indices = generator.integers(-1 if mode == "drop" else 0, shape[0] - 1, count)
    attributes = {"reduction": reduction, "include_self": include_self, "mode": mode}
    attributes["negative"] = False
    call = (data, indices, updates)
    arrays = {
        "indices": indices, "data": data, "updates": updates, "gradient": gradient,
        "result": gatherum.scatter_slices(*call, **attributes),
        "of_data": np.full_like(data, 9), "of_updates": np.full_like(updates, 9),
    }  # fmt: skip
    return gatherum.plan("scatter_slices", *call, **attributes), arrays


def _expected(arrays, reduction, include_self):
    data, updates, gradient = (arrays[name] for name in ("data", "updates", "gradient"))
    of_data, of_updates, one = gradient.copy(), np.zeros_like(updates), gradient.dtype.type(1)
    for p, column in np.ndindex(data.shape):
        arrived = np.flatnonzero(arrays["indices"] == p)
        if arrived.size == 0:
            continue
        values = [data[p, column]] * include_self + [updates[j, column] for j in arrived]
        gradients = []
        for k, value in enumerate(values):
            if reduction == "mul":
                before, behind = one, one
                for other in values[:k]:
                    before = before * other
                for other in reversed(values[k + 1 :]):
                    behind = other * behind
                gradients.append(gradient[p, column] * (before * behind))
            else:
                best = max(values) if reduction == "max" else min(values)
                number = one.dtype.type(sum(v == best for v in values))
                gradients.append(gradient[p, column] / number if value == best else 0)
        of_data[p, column] = gradients.pop(0) if include_self else 0
        of_updates[arrived, column] = gradients
    return of_data, of_updates


@pytest.mark.parametrize("mode", ["raise", "drop"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduction", ["mul", "max", "min"])
@pytest.mark.parametrize("shape", [(6, 5), (90, 3), (4, 1), (3, 300)])
def test_bits(core, read, shape, reduction, include_self, mode):
    plan, arrays = _arrays(reduction, include_self, shape=shape, mode=mode)
    assert _status(core, read(plan), arrays)[0] == c.OK
    for name, expected in zip(("of_data", "of_updates"), _expected(arrays, reduction, include_self),
                              strict=True):  # fmt: skip
        np.testing.assert_array_equal(arrays[name], expected)


@pytest.mark.parametrize("name", ["of_data", "of_updates"])
def test_a_gradient_that_is_not_wanted(core, read, name):
    for reduction in ("mul", "max"):
        plan, arrays = _arrays(reduction, True)
        both = dict(zip(("of_data", "of_updates"), _expected(arrays, reduction, True), strict=True))
        del arrays[name]
        assert _status(core, read(plan), arrays)[0] == c.OK
        (other,) = {"of_data", "of_updates"} - {name}
        np.testing.assert_array_equal(arrays[other], both[other])


def test_the_same_bits_on_any_threads(core, read, settings_restored):
    generator = np.random.default_rng(8)
    updates = generator.random((20_000, 64), np.float32)
    data, gradient = generator.random((2, 300, 64), np.float32)
    indices = generator.integers(0, 300, 20_000)
    for reduction in ("mul", "max"):
        plan = gatherum.plan("scatter_slices", data, indices, updates, reduction=reduction)
        result = gatherum.scatter_slices(data, indices, updates, reduction=reduction)
        results = set()
        for threads in (1, 2, 3, 7):
            gatherum.set_num_threads(threads)
            outputs = {"of_data": np.empty_like(data), "of_updates": np.empty_like(updates)}
            arrays = {"indices": indices, "data": data, "updates": updates, "result": result,
                      "gradient": gradient, **outputs}  # fmt: skip
            assert _status(core, read(plan), arrays)[0] == c.OK
            results.add(b"".join(array.tobytes() for array in outputs.values()))
        assert len(results) == 1


def test_operands_that_are_too_small(core, read):
    for reduction, include_self in (("mul", True), ("max", True), ("min", False)):
        plan, arrays = _arrays(reduction, include_self)
        program = read(plan)
        unread = {"result"} if reduction == "mul" else set()
        unread |= set() if include_self else {"data"}
        for name in NAMES:
            if name in unread:
                assert _status(core, program, arrays | {name: None})[0] == c.OK
                continue
            status, error = _status(core, program, arrays, name)
            assert (status, error.operand.decode()) == (c.TOO_SMALL, name)
            if not name.startswith("of_"):
                status, error = _status(core, program, arrays, null=name)
                assert (status, error.operand.decode()) == (c.TOO_SMALL, name)


def test_programs_without_gradients(core, read):
    data, indices, updates = np.ones((4, 3)), np.zeros(2, np.int64), np.ones((2, 3))
    calls = [("scatter_slices", (data, indices, updates), {"reduction": r})
             for r in ("none", "add", "mean")]  # fmt: skip
    calls.append(("gather", (data, indices), {}))
    for dtype, reduction in (
        ("int32", "max"),
        ("int8", "mul"),
        ("bool", "mul"),
        ("float16", "mul"),
    ):
        whole = [array.astype(dtype) for array in (data, updates)]
        call = (whole[0], indices, whole[1])
        calls.append(("scatter_slices", call, {"reduction": reduction}))
    for op, operands, attributes in calls:
        assert (
            _status(core, read(gatherum.plan(op, *operands, **attributes)), {})[0]
            == c.INVALID_PROGRAM
        )


def test_an_invalid_index_is_found(core, read):
    plan, arrays = _arrays("max", True)
    arrays["indices"][3] = 99
    status, error = _status(core, read(plan), arrays)
    assert (status, error.position, error.value) == (INVALID_INDEX, 3, 99)


def test_a_nan_is_another_s_equal(core, read):
    nan = np.float32("nan")
    data, updates = np.float32([[nan], [1]]), np.float32([[nan], [2], [1]])
    indices = np.array([0, 0, 1])
    for include_self, of_updates in ((True, [2, 0, 2]), (False, [4, 0, 4])):
        fold = {"reduction": "max", "include_self": include_self}
        call = data, indices, updates
        arrays = {
            "indices": indices, "data": data, "updates": updates,
            "result": gatherum.scatter_slices(*call, **fold),
            "gradient": np.float32([[4], [4]]),
            "of_data": np.empty_like(data), "of_updates": np.empty_like(updates),
        }  # fmt: skip
        plan = gatherum.plan("scatter_slices", *call, **fold)
        assert _status(core, read(plan), arrays)[0] == c.OK
        assert arrays["of_updates"][:, 0].tolist() == of_updates
        assert arrays["of_data"][:, 0].tolist() == ([2, 2] if include_self else [0, 0])
