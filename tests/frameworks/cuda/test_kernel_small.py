"""Small scatters by one launch of the CUDA kernels on this processor."""

import os

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from shim.device import COMPILER, NO_COMPILER, ShimDevice
from shim.functions import ShimFunctions
from shim.values import RNG, values

import gatherum
from gatherum import reference
from gatherum._model.reductions import FOLDS
from gatherum.cuda import checks, explain, plan_launches, small_scatters
from strategies import REDUCTIONS_OF, same_bits

pytestmark = pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)
slow = pytest.mark.slow  # compiles each variant of a kernel, half a second each
FEW = settings(
    max_examples=int(os.environ.get("GATHERUM_EXAMPLES", "30")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
KERNELS = {"none": "scatter_small", "add": "fold_small"}


class Recording(ShimDevice):
    """Records the steps that are no launches, too."""

    def __init__(self):
        super().__init__()
        self.clears = 0

    def clear(self, buffer, nbytes):
        self.clears += 1
        super().clear(buffer, nbytes)


@pytest.fixture
def shim():
    return ShimFunctions(Recording)


def scattered(shim, operands, expected_launches, **options):
    """Compare a scatter with the oracle, and its launches with the expected ones."""
    result = shim.scatter_slices(*operands, **options)
    assert same_bits(result, reference.scatter_slices(*operands, **options))
    assert shim.last.names() == expected_launches
    assert shim.last.clears == 0


@pytest.mark.parametrize("reduction", KERNELS)
@pytest.mark.parametrize("mode", ["raise", "drop"])
def test_a_small_scatter_is_one_launch_without_a_clear(shim, reduction, mode):
    indices = RNG.integers(-6, 6 if mode == "raise" else 9, 40)
    operands = values((6, 20), "f4"), indices, values((40, 20), "f4")
    scattered(shim, operands, [KERNELS[reduction]], reduction=reduction, mode=mode)
    assert shim.last.reads == (mode == "raise")
    assert shim.last.scratch() == (checks.RECORD_BYTES if mode == "raise" else 0)


@pytest.mark.parametrize("reduction", KERNELS)
def test_a_small_scatter_in_place_is_one_launch(shim, reduction):
    data, indices = values((6, 20), "f4"), RNG.integers(-6, 6, 40)
    call = data.copy(), indices, values((40, 20), "f4")
    expected = reference.scatter_slices(*call, reduction=reduction)
    shim.scatter_slices(*call, reduction=reduction, out=call[0])
    assert same_bits(call[0], expected)
    assert (shim.last.names(), shim.last.clears) == ([KERNELS[reduction]], 0)


@pytest.mark.parametrize("reduction", KERNELS)
@pytest.mark.parametrize("in_place", [False, True])
def test_an_invalid_index_writes_nothing_and_a_later_call_is_right(shim, reduction, in_place):
    data, updates = values((6, 300), "f4"), values((40, 300), "f4")
    for bad in (6, -7):
        indices = RNG.integers(-6, 6, 40)
        indices[[17, 39]] = bad
        place = data.copy() if in_place else np.full((6, 300), 9, "f4")
        call, before = (place if in_place else data, indices, updates), place.tobytes()
        with pytest.raises(IndexError) as caught:
            shim.scatter_slices(*call, reduction=reduction, out=place)
        with pytest.raises(IndexError) as expected:
            gatherum.scatter_slices(*call, reduction=reduction, out=place)
        assert str(caught.value) == str(expected.value)
        assert place.tobytes() == before
        assert shim.last.names() == [KERNELS[reduction], "check", "first"]
    indices = RNG.integers(-6, 6, 40)
    scattered(shim, (data, indices, updates), [KERNELS[reduction]], reduction=reduction)


def test_one_item_may_stand_for_all_data(shim):
    """`torch_scatter` and sums into zeros start from one item of zeros."""
    indices, updates = RNG.integers(-6, 6, 40), values((40, 20), "f4")
    operands = np.broadcast_to(np.float32(3), (6, 20)), indices, updates
    for reduction, name in KERNELS.items():
        scattered(shim, operands, [name], reduction=reduction)
    strings = np.broadcast_to(np.array("abc", "S3"), (6, 2)), indices, np.full((40, 2), "xyz", "S3")
    result = shim.scatter_slices(*strings)  # no word has 3 bytes
    assert same_bits(result, reference.scatter_slices(*strings))
    assert shim.last.names() == ["check", "gather", "winners", "scatter"]


LARGER = [
    ((6, 20), (513, 20), {}),  # too many tuples
    ((6, 1 << 15), (9, 1 << 15), {"points": 1 << 15}),  # too many chunks
    ((6, 20), (40, 20), {"order": "F"}),  # the launch would have to copy another layout
]


@pytest.mark.parametrize(("shape", "updates", "more"), LARGER)
def test_a_larger_scatter_has_several_launches_and_its_check_needs_no_clear(
    shim, shape, updates, more, monkeypatch
):
    monkeypatch.setattr(small_scatters, "MOST_POINTS", more.get("points", 1 << 18))
    data = np.asarray(values(shape, "f4"), order=more.get("order", "C"))
    operands = data, RNG.integers(-6, 6, updates[0]), values(updates, "f4")
    result = shim.scatter_slices(*operands, reduction="max")
    assert same_bits(result, gatherum.scatter_slices(*operands, reduction="max"))
    assert shim.last.names()[:3] == ["check", "gather", "sorted_keys"]
    assert dict(shim.last.launches[0].macros)["ONE_BLOCK"] == "1"
    assert shim.last.clears == 0


def test_many_indices_are_checked_by_many_blocks(shim, monkeypatch):
    monkeypatch.setattr(checks, "MOST_CHECKED_BY_BLOCK", 2000)
    for count, clears in ((2000, 0), (2001, 1)):
        operands = values((6,), "f4"), RNG.integers(-6, 6, count), values((count,), "f4")
        result = shim.scatter_slices(*operands, reduction="max")
        assert same_bits(result, gatherum.scatter_slices(*operands, reduction="max"))
        assert shim.last.clears == clears
        operands[1][count // 2 :] = 6
        with pytest.raises(IndexError, match=rf"^scatter_slices: index 6 .*\[{count // 2}\]"):
            shim.scatter_slices(*operands, reduction="max")


def test_exact_sums_have_several_launches(shim):
    operands = values((6,), "f8"), RNG.integers(-6, 6, 40), values((40,), "f8")
    result = shim.scatter_slices(*operands, reduction="fsum")
    assert same_bits(result, reference.scatter_slices(*operands, reduction="fsum"))
    assert shim.last.names()[0] == "check" and "fold_exact" in shim.last.names()


def test_the_grid_does_not_grow_with_the_points():
    plan = explain.plan("scatter_slices", ((4096, 256), "f4"), ((9,), "i8"), ((9, 256), "f4"))
    placement = plan_launches.Placement(16, 16, 16, 16, in_place=False)
    launch, _ = plan_launches.program_of(plan, placement, processors=7).steps
    assert (launch.kernel.name, launch.grid) == ("scatter_small", 14)


@slow
@pytest.mark.parametrize("count", [1, 2, 31, 33, 64, 65, 500, 511, 512])
@pytest.mark.parametrize("destinations", [1, 3, 200, 1500])
def test_every_number_of_tuples_and_destinations(shim, count, destinations):
    data, indices = values((destinations, 3), "f4"), RNG.integers(-1, destinations + 1, count)
    updates = values((count, 3), "f4")
    for reduction in ("none", "add"):
        for place in (None, data.copy()):
            source = data if place is None else place
            options = {"reduction": reduction, "mode": "drop"}
            expected = gatherum.scatter_slices(data, indices, updates, **options)
            result = shim.scatter_slices(source, indices, updates, **options, out=place)
            assert same_bits(result, expected)
            assert shim.last.names() == [KERNELS[reduction]]


@slow
@pytest.mark.parametrize("include_self", [True, False], ids=["with self", "without"])
@pytest.mark.parametrize(
    ("reduction", "dtype"),
    [(r, d) for r in FOLDS if r not in ("fsum", "fmean") for d in REDUCTIONS_OF[r]],
    ids=str,
)
def test_every_fold(shim, reduction, dtype, include_self):
    options = {"reduction": reduction, "include_self": include_self}
    for columns in (1, 16):
        indices = np.repeat(np.arange(6), (0, 1, 2, 9, 60, 130))
        RNG.shuffle(indices)
        data, updates = values((6, columns), dtype), values((indices.size, columns), dtype)
        item = np.broadcast_to(data[0, :1], data.shape)
        for source in (data, item):
            with np.errstate(all="ignore"):
                result = shim.scatter_slices(source, indices, updates, **options)
            expected = gatherum.scatter_slices(source, indices, updates, **options)
            assert same_bits(result, expected)
            assert shim.last.names() == ["fold_small"]


@slow
@pytest.mark.parametrize("op", ["scatter_elements", "scatter_nd"])
@given(data=st.data())
@FEW
def test_programs_for_other_addressings(op, data):
    shape = data.draw(st.tuples(*(st.integers(1, 5) for _ in range(3))))
    dtype = data.draw(st.sampled_from(["f4", "i2", "c16"]))
    reduction = data.draw(st.sampled_from(["none", "add", "mean"]))
    mode = data.draw(st.sampled_from(["raise", "clip", "wrap", "drop"]))
    size = shape[1] - (mode == "raise")
    if op == "scatter_nd":
        indices = RNG.integers(0, size + 1, (shape[0], 7, 1))
        updates, options = values((shape[0], 7, shape[2]), dtype), {"batch_dims": 1}
    else:
        indices = RNG.integers(0, size + 1, (shape[0], 7, shape[2]))
        updates, options = values(indices.shape, dtype), {"axis": 1}
    options |= {"reduction": reduction, "mode": mode}
    operands = values(shape, dtype), indices, updates
    shim = ShimFunctions(Recording)
    with np.errstate(all="ignore"):
        result = getattr(shim, op)(*operands, **options)
    assert same_bits(result, getattr(gatherum, op)(*operands, **options))
    assert shim.last.names() == [KERNELS.get(reduction, "fold_small")]
