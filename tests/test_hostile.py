"""Arguments that run code of their own, or are not what they say: memory stays safe."""

import numpy as np
import pytest

import gatherum
from canaries import guarded, guarded_copy, strays

FAR = 1 << 22  # items: their memory goes back to the system when they are freed


class Meddler:
    """Does something to the operands whenever it is asked what it is."""

    def __init__(self, deed, value=1):
        self.deed, self.value = deed, value

    def __array__(self, dtype=None, copy=None):
        self.deed()
        return np.array(self.value)

    def __index__(self):
        self.deed()
        return self.value

    def __bool__(self):
        self.deed()
        return bool(self.value)


def _moved(operand):
    """Ways to change an array that the call has already looked at."""

    def reshape():
        operand.shape = (*operand.shape, 1)

    def lock():
        operand.flags.writeable = False

    return {
        "shrunk": lambda: operand.resize(1, refcheck=False),
        "grown": lambda: operand.resize(3 * FAR, refcheck=False),
        "reshaped": reshape,
        "locked": lock,
    }


@pytest.mark.parametrize("deed", ["shrunk", "grown", "reshaped", "locked"])
@pytest.mark.parametrize("name", ["data", "indices", "out"])
@pytest.mark.parametrize("planned", [False, True])
def test_a_fill_value_that_changes_an_operand(name, deed, planned):
    operands = {"data": np.ones(FAR), "indices": np.zeros(FAR, int), "out": np.empty(FAR)}
    operands["indices"][:] = FAR - 1
    fill = Meddler(_moved(operands[name])[deed])
    call = gatherum.gather
    attributes = {"mode": "fill"}
    if planned:
        given = operands["data"], operands["indices"]
        call, attributes = gatherum.plan("gather", *given, mode="fill", out=operands["out"]).run, {}
    with pytest.raises(ValueError, match=name) as caught:
        call(
            operands["data"],
            operands["indices"],
            out=operands["out"],
            fill_value=fill,
            **attributes,
        )
    assert str(caught.value) == f"gather: `{name}` must keep its shape and memory during the call"


def test_a_fill_value_that_changes_nothing():
    fill = Meddler(lambda: None, 7)
    data = np.arange(3.0)
    assert gatherum.gather(data, [1, 5], mode="fill", fill_value=fill).tolist() == [1, 7]


@pytest.mark.parametrize("name", ["indices", "axis", "negative"])
def test_an_argument_that_changes_the_data_before_the_call_looks_at_it(name):
    data = np.arange(float(FAR))
    meddler = Meddler(lambda: data.resize(4, refcheck=False), 0)
    arguments = {"indices": [3], "axis": 0} | {name: meddler}
    if name == "indices":
        assert gatherum.gather(data, **arguments) == 0
    else:
        assert gatherum.gather(data, **arguments).tolist() == [3]
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 of size 4"):
        gatherum.gather(data, [4])


class Liar(np.ndarray):
    """An array that says of itself what the test wants."""

    said: dict[str, object]

    def __getattribute__(self, name):
        said = np.ndarray.__getattribute__(self, "__dict__").get("said", {})
        return said[name] if name in said else np.ndarray.__getattribute__(self, name)


def _liar(array, **said):
    liar = array.view(Liar)
    liar.said = said
    return liar


def test_out_that_says_it_is_larger_than_it_is():
    out = guarded((3,), np.float64)
    liar = _liar(out, shape=(5,), strides=(8,))
    with pytest.raises(ValueError, match="`out`") as caught:
        gatherum.gather(np.arange(10.0), [0, 1, 2, 3, 4], out=liar)
    assert str(caught.value) == "gather: `out` must have shape (5,), got (3,)"
    assert strays(out) == []
    with pytest.raises(ValueError, match="`out`"):
        gatherum.plan("gather", np.arange(10.0), np.arange(5), out=liar)


def test_out_that_says_it_is_writable():
    out = guarded((2,), np.float64)
    before = out.tobytes()
    out.flags.writeable = False
    with pytest.raises(ValueError, match="`out`") as caught:
        gatherum.gather(np.arange(3.0), [0, 1], out=_liar(out, flags=np.empty(2).flags))
    assert str(caught.value) == "gather: `out` must be writable, got a read-only array"
    assert out.tobytes() == before


def test_operands_of_a_plan_that_say_they_fit():
    plan = gatherum.plan("gather", np.arange(9.0), np.arange(5))
    data = _liar(guarded_copy(np.arange(3.0)), shape=(9,), strides=(8,))
    with pytest.raises(ValueError, match="plan") as caught:
        plan.run(data, np.arange(5))
    assert (
        str(caught.value) == "gather: the plan was made for `data` float64 (9,), got float64 (3,)"
    )


class Impostor:
    """No array, whatever it says."""

    __class__ = np.ndarray
    shape, strides, dtype = (2,), (8,), np.dtype("f8")

    def __array__(self, dtype=None, copy=None):
        return np.zeros(2)


def test_what_only_says_that_it_is_an_array():
    assert isinstance(Impostor(), np.ndarray)
    assert gatherum.gather(Impostor(), [1]).tolist() == [0]  # as any other object with __array__
    with pytest.raises(TypeError, match="`out`") as caught:
        gatherum.gather(np.zeros(3), [0, 1], out=Impostor())
    assert str(caught.value) == "gather: `out` must be a numpy.ndarray, got Impostor"
    plan = gatherum.plan("gather", np.zeros(2), np.arange(2))
    for operands in [(Impostor(), np.arange(2)), (np.zeros(2), Impostor())]:
        with pytest.raises(TypeError, match="without a mask, got Impostor"):
            plan.run(*operands)
    with pytest.raises(TypeError, match="a plan runs on arrays"):
        gatherum.native.run(plan, np.zeros(2), [0, 1], None, 0, None)


def test_a_word_that_is_equal_to_every_other():
    class Any(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            return True

    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 of size 3"):
        gatherum.gather(np.zeros(3), np.array([9]), mode=Any("ignore"))


# --- Sizes whose products no integer holds: broadcast operands need no memory


def _everywhere(value, *shape):
    return np.broadcast_to(np.int8(value), shape)


@pytest.mark.parametrize("count", [2**60, 2**62, 2**63 - 1])
def test_an_index_is_found_among_more_than_a_sum_of_their_bytes_holds(settings_restored, count):
    for threads in (1, 2):
        gatherum.set_num_threads(threads)
        with pytest.raises(IndexError) as caught:
            gatherum.gather(np.zeros((4, 0), np.int8), _everywhere(9, count))
        assert str(caught.value) == (
            "gather: index 9 is out of bounds for axis 0 of size 4 (indices[0])"
        )
    data = np.zeros((4, 2))
    for shape in [(count, 1), (1, count, 1)]:
        with pytest.raises(IndexError, match=r"index 9 is out of bounds for axis 0 of size 4"):
            gatherum.scatter_nd(data, _everywhere(9, *shape), 1.0, out=data)


@pytest.mark.parametrize(
    ("algorithm", "data", "count", "reduction"),
    [
        # 16 bytes an update are 0 and 16 modulo 2^64; 5 bytes an update are 4.
        ("grouped", np.ones((3, 2), np.int8), 2**60, "mean"),
        ("grouped", np.ones((3, 2), np.int8), 2**60 + 1, "mean"),
        ("partition", np.ones(9 << 20, np.int8), 3_689_348_814_741_910_324, "add"),
    ],
)
def test_scratch_for_more_updates_than_there_is_memory(algorithm, data, count, reduction):
    indices, updates = _everywhere(0, count, 1), np.ones(data.shape[1:], np.int8)
    plan = gatherum.plan("scatter_nd", data, indices, updates, reduction=reduction, mode="drop")
    assert plan.algorithm == algorithm
    before = data.copy()
    with pytest.raises(MemoryError):
        gatherum.scatter_nd(data, indices, updates, reduction, mode="drop", out=data)
    assert data.tobytes() == before.tobytes()


def test_a_result_that_no_memory_holds():
    with pytest.raises(MemoryError):
        gatherum.gather(np.zeros(1), _everywhere(0, 2**59 + 2**58))
    with pytest.raises(ValueError, match="more bytes than can be addressed"):
        gatherum.gather(np.zeros(1), _everywhere(0, 2**62))


def test_empty_operands_whose_strides_mean_nothing():
    wild = np.lib.stride_tricks.as_strided(np.zeros(0), (5, 0, 7), (2**62, 2**61, -(2**62)))
    assert gatherum.gather(wild, [4, 0]).shape == (2, 0, 7)
    assert gatherum.gather(np.zeros((3, 0, 7)), [4], 2, out=wild[:3, :, :1]).shape == (3, 0, 1)
    assert gatherum.scatter_nd(wild, [[4]], np.zeros((1, 0, 7)), "add", out=wild) is wild
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 of size 5"):
        gatherum.scatter_nd(wild, [[5]], wild[:1])
