"""Sort pairs by launches of this package: radix.cuh. No library and no framework is needed.

A program without a library's sort is replayed without Python. On an H200 (2026-11-27), a scatter of
20,000 rows took the host 52 us, 133 with CUB's sort and 216 with torch's.
"""

from __future__ import annotations

from .device import Kernel, Widths
from .programs import Arguments, Recorder, Slot

# The most pairs that these launches sort. On that device, a scatter of 2^18 float32 took 0.059 ms,
# 0.056 with CUB and 0.080 with torch's sort; of 2^20, 0.150, 0.112 (but the host 0.188) and 0.154;
# of 2^22, 0.58 and 0.26 with CUB.
MOST_PAIRS = 1 << 20
# Threads of a block, pairs per thread, and the most bits of a digit. With 4 pairs per thread, 2^18
# took 0.057 ms and 2^20 0.159; with 16, 0.068 and 0.149. With digits of 8 bits, 0.070 and 0.167.
THREADS = 256
PAIRS_PER_THREAD = 8
MOST_DIGIT_BITS = 10
# The launches of a pass: the tiles are blocks of the first and the last, digits of the second.
SORT_KERNELS = ("sort_count", "sort_offsets", "sort_move")

Pair = tuple[Slot, Slot]


def tiles_of(length: int) -> int:
    """Return the number of blocks that sort a number of pairs."""
    return -(-length // (THREADS * PAIRS_PER_THREAD))


def digits_of(bits: int) -> list[int]:
    """Return the bits of the digit of each pass, for keys of some bits."""
    passes = -(-bits // MOST_DIGIT_BITS)
    return [-(-(bits - i) // passes) for i in range(passes)]


def scratch_bytes(length: int, widths: Widths) -> int:
    """Return the bytes of the counts, without the pairs and the copy of them."""
    return 4 * (tiles_of(length) + 1) << max(digits_of(widths.bits))


def source_of(result: Pair, other: Pair, bits: int) -> tuple[Pair, Pair]:
    """Return the buffers of the unsorted pairs and of the first pass, to end in `result`."""
    return (result, other) if len(digits_of(bits)) % 2 == 0 else (other, result)


def sort(program: Recorder, length: int, widths: Widths, pairs: Pair, spare: Pair) -> Pair:
    """Record the passes, which move the pairs from one buffer to the other and back.

    Return the buffers that have the sorted pairs: `pairs` after an even number of passes.
    """
    tiles, digits = tiles_of(length), digits_of(widths.bits)
    count = program.allocate(4 * tiles << max(digits))
    total = program.allocate(4 << max(digits))
    macros = {
        "THREADS": THREADS,
        "PER_THREAD": PAIRS_PER_THREAD,
        "DIGIT_VALUES": 1 << MOST_DIGIT_BITS,
    }
    macros |= {"KEY_BYTES": widths.key, "PAYLOAD_BYTES": widths.payload}
    shift = 0
    for bits in digits:
        fields = *pairs, *spare, count, total, length, tiles, shift, 1 << bits
        for name, grid in zip(SORT_KERNELS, (tiles, 1 << bits, tiles), strict=True):
            program.launch(Kernel.of(name, **macros), grid, THREADS, Arguments.of(fields))
        shift += bits
        pairs, spare = spare, pairs
    return pairs
