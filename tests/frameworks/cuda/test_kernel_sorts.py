"""The sort by launches against a stable sort by NumPy."""

import numpy as np
import pytest
from shim.device import COMPILER, NO_COMPILER, ShimDevice

from gatherum.cuda import programs, radix_sort
from gatherum.cuda.device import Widths

pytestmark = pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)


def sorted_pairs(keys, payload, bits):
    """Return the pairs sorted by launches."""
    device, length = ShimDevice(), keys.size
    widths = Widths(keys.itemsize, payload.itemsize, bits)
    buffers = [device.allocate(length * width) for width in (*widths[:2], *widths[:2])]
    for buffer, array in zip(buffers, (keys, payload), strict=False):
        buffer.inside[...] = array.view(np.uint8)
    slots = [programs.Slot(number) for number in range(4)]
    recorder = programs.Recorder(4)
    results = radix_sort.record_passes(recorder, length, widths, tuple(slots[:2]), tuple(slots[2:]))
    program = recorder.program()
    assert sum(each.nbytes for each in program.scratch) == radix_sort.scratch_bytes(length, widths)
    device.run_program(program, tuple(buffer.address for buffer in buffers))
    assert not device.strays()
    return [
        buffers[slot.number].inside.view(array.dtype)
        for slot, array in zip(results, (keys, payload), strict=True)
    ]


@pytest.mark.parametrize(
    ("length", "bits", "width", "values"),
    [
        (1, 1, 4, "any"),
        (9000, 17, 4, "any"),  # two passes over several tiles
        (4097, 31, 8, "any"),
        (4097, 20, 4, "few"),
    ],
)
def test_pairs_are_sorted_stably(length, bits, width, values):
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 1 << bits, length).astype(np.uint32)
    if values != "any":
        keys = keys[rng.integers(0, 3, length)]
    payload = np.arange(length, dtype=f"u{width}")
    order = np.argsort(keys, kind="stable")
    result = sorted_pairs(keys, payload, bits)
    assert np.array_equal(result[0], keys[order])
    assert np.array_equal(result[1], payload[order])


def test_there_may_be_more_tiles_than_threads_of_a_block(monkeypatch):
    monkeypatch.setattr(radix_sort, "RADIX_THREADS", 64)
    monkeypatch.setattr(radix_sort, "PAIRS_PER_THREAD", 1)
    keys = np.random.default_rng(1).integers(0, 8, 64 * 65).astype(np.uint32)
    payload = np.arange(keys.size, dtype=np.uint32)
    assert np.array_equal(sorted_pairs(keys, payload, 3)[1], np.argsort(keys, kind="stable"))


def test_the_digits_of_all_passes_are_the_bits_of_the_keys():
    for bits in range(1, 32):
        digits = radix_sort.digits_of(bits)
        assert sum(digits) == bits
        assert max(digits) <= radix_sort.MOST_DIGIT_BITS
        assert max(digits) - min(digits) <= 1
