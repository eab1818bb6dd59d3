"""What a call may not change stays as it was, in every algorithm, when it succeeds or fails."""

from typing import NamedTuple

import numpy as np
import pytest

import gatherum
from canaries import byte_rows, guarded, guarded_copy, strays
from gatherum.operators import OPERATORS
from sizes import family

RNG = np.random.default_rng(8)


class Work(NamedTuple):
    algorithm: str
    op: str
    data: tuple[int, ...]
    indices: tuple[int, ...]
    size: int  # of the dimension that an index selects from
    dtype: str
    attributes: dict[str, object]

    def operands(self):
        """Make valid operands, with canaries around them."""
        indices = RNG.integers(-self.size, self.size, self.indices).astype(np.int32)
        shapes = [self.data]
        if self.op.startswith("scatter"):
            axis = self.attributes.get("axis", 0)
            shapes.append(OPERATORS[self.op].moved(self.data, self.indices, axis))
        values = [RNG.integers(1, 100, shape).astype(self.dtype) for shape in shapes]
        return [guarded_copy(array) for array in (values[0], indices, *values[1:])]

    def run(self, operands, **more):
        return getattr(gatherum, self.op)(*operands, **self.attributes, **more)


ADD, MEAN = {"reduction": "add"}, {"reduction": "mean"}
SCATTERS = {
    "items, a few": Work("units", "scatter_nd", (900,), (700, 1), 900, "f4", ADD),
    "items, far apart": Work("units", "scatter_nd", (700_000,), (40_000, 1), 700_000, "f8", ADD),
    "odd items": Work("units", "scatter_nd", (5_000,), (90_000, 1), 5_000, "S3", {}),
    "rows": Work("units", "scatter_nd", (3_000, 40), (9_000, 1), 3_000, "f4", ADD),
    "one slab": Work("slabs", "scatter_nd", (3_000,), (300_000, 1), 3_000, "f8", ADD),
    "a far slab": Work("slabs", "scatter_nd", (600_000,), (400_000, 1), 600_000, "f8", ADD),
    "ranges of a slab": Work("slabs", "scatter_nd", (300_000,), (400_000, 1), 300_000, "f8", ADD),
    "a counted slab": Work("slabs", "scatter_nd", (3_000,), (300_000, 1), 3_000, "f4", MEAN),
    "columns": Work("slabs", "scatter_elements", (900, 300), (900, 300), 900, "f4", ADD),
    "lines": Work(
        "slabs", "scatter_elements", (300, 900), (300, 900), 900, "f4", ADD | {"axis": 1}
    ),
    "slices that are columns": Work(
        "slabs", "scatter_slices", (300, 90), (700,), 90, "f4", {"axis": 1}
    ),
    "slices that are rows": Work("units", "scatter_slices", (300, 90), (70, 9), 300, "f4", ADD),
    "slices, one slab a line": Work(
        "slabs", "scatter_slices", (300, 90), (700,), 90, "f2", MEAN | {"axis": 1}
    ),
    "slices in groups": Work("grouped", "scatter_slices", (300, 90), (700,), 300, "f2", MEAN),
    "a partition": Work(
        "partition", "scatter_nd", (2_200_000,), (280_000, 1), 2_200_000, "f4", ADD
    ),
    "a counted partition": Work(
        "partition", "scatter_nd", (2_200_000,), (280_000, 1), 2_200_000, "f2", MEAN
    ),
    "groups, counted out": Work("grouped", "scatter_nd", (300, 40), (9_000, 1), 300, "f4", MEAN),
    "groups, sorted": Work("grouped", "scatter_nd", (900_000,), (9_000, 1), 900_000, "f4", MEAN),
}
GATHERS = {
    "rows": Work("units", "gather", (3_000, 40), (9_000,), 3_000, "f4", {}),
    "rows of whole lines": Work("streamed", "gather", (3_000, 64), (20_000,), 3_000, "f4", {}),
    "odd rows": Work("units", "gather", (3_000, 41), (9_000,), 3_000, "S3", {}),
    "items": Work("units", "gather", (700_000,), (400_000,), 700_000, "f4", {}),
    "stretches": Work(
        "stretches", "gather_elements", (300, 900), (300, 900), 900, "f4", {"axis": 1}
    ),
    "common stretches": Work("stretches", "gather", (300, 900), (700,), 900, "u1", {"axis": 1}),
    "packed columns": Work("packed", "gather_elements", (900, 300), (900, 300), 900, "f4", {}),
}


def _bytes_of(arrays):
    return [byte_rows(array).tobytes() for array in arrays]


def _algorithm(work, operands, **more):
    return family(gatherum.plan(work.op, *operands, **work.attributes, **more).algorithm)


@pytest.mark.parametrize("name", SCATTERS)
def test_a_scatter_that_fails_has_changed_nothing(settings_restored, name):
    work = SCATTERS[name]
    operands = work.operands()
    data, indices, _ = operands
    out = guarded(data.shape, data.dtype)
    assert _algorithm(work, operands, out=data) == work.algorithm
    for threads, position, bad in [
        (1, 0, work.size),
        (3, indices.size // 2, -work.size - 1),
        (3, indices.size - 1, 2**31 - 1),
        (7, indices.size - 2, -(2**31)),
    ]:
        gatherum.set_num_threads(threads)
        valid, indices.flat[position] = indices.flat[position], bad
        watched = [*operands, out]
        before = _bytes_of(watched)
        for more in ({"out": data}, {"out": out}, {}):
            with pytest.raises(IndexError, match=f"index {bad} is out of bounds for axis [01] of"):
                work.run(operands, **more)
            assert _bytes_of(watched) == before
        assert [strays(array) for array in watched] == [[]] * len(watched)
        indices.flat[position] = valid


@pytest.mark.parametrize("name", SCATTERS)
@pytest.mark.parametrize("mode", ["raise", "drop"])
def test_a_scatter_writes_nowhere_else(settings_restored, name, mode):
    work = SCATTERS[name]
    operands = work.operands()
    data, indices, updates = operands
    if mode == "drop":
        indices.flat[:: 2 * indices.shape[-1] + 1] = work.size
        indices.flat[1 :: 2 * indices.shape[-1] + 1] = -(2**31)
    kept = _bytes_of(operands)
    out = guarded(data.shape, data.dtype)
    for threads in (1, 3):
        gatherum.set_num_threads(threads)
        expected = work.run(operands, mode=mode)
        work.run(operands, mode=mode, out=out)
        assert _bytes_of([expected, *operands]) == _bytes_of([out]) + kept
        place = guarded_copy(data)
        work.run([place, indices, updates], mode=mode, out=place)
        assert _bytes_of([place]) == _bytes_of([out])
        assert [strays(array) for array in (*operands, out, place)] == [[]] * 5


@pytest.mark.parametrize("name", GATHERS)
def test_a_gather_writes_nowhere_else(settings_restored, name):
    work = GATHERS[name]
    operands = work.operands()
    out = guarded(work.run(operands).shape, work.dtype)
    assert _algorithm(work, operands, out=out) == work.algorithm
    before = _bytes_of(operands)
    watched = [*operands, out]
    for threads in (1, 3):
        gatherum.set_num_threads(threads)
        assert work.run(operands, out=out) is out
        assert _bytes_of([work.run(operands), *operands]) == _bytes_of([out]) + before
        assert [strays(array) for array in watched] == [[]] * 3
    indices = operands[1]
    for position, bad in [(indices.size // 2, work.size), (indices.size - 1, -work.size - 1)]:
        indices.flat[position] = bad
        before = _bytes_of(operands)
        with pytest.raises(IndexError, match=f"index -?{work.size}"):
            work.run(operands, out=out)
        work.run(operands, out=out, mode="fill")
        assert _bytes_of(operands) == before
        assert [strays(array) for array in watched] == [[]] * 3


def test_data_that_must_be_copied_is_not_while_an_index_may_be_bad(settings_restored):
    data, out = np.arange(18_000.0)[::2], np.full(9_000, 7.0)
    indices, updates = np.zeros((300_000, 1), np.int32), np.ones(300_000)
    indices[-1] = 9_000
    for threads in (1, 4):
        gatherum.set_num_threads(threads)
        plan = gatherum.plan("scatter_nd", data, indices, updates, reduction="add", out=out)
        assert family(plan.algorithm) == "slabs"
        with pytest.raises(IndexError):
            gatherum.scatter_nd(data, indices, updates, reduction="add", out=out)
        assert (out == 7).all()
