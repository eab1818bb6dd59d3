"""Sort pairs with launches of this package: radix.cuh. No library and no framework is needed.

A program without a library's sort is replayed without Python. On an H200 (2026-11-27), a scatter of
20,000 rows took the host 52 us, 133 with CUB's sort and 216 with torch's.
"""

from __future__ import annotations

from .device import Kernel, Widths
from .programs import Arguments, Recorder, Slot

# The maximum number of pairs that these launches sort. On that device, a scatter of 2^18 float32
# took 0.059 ms, 0.056 with CUB and 0.080 with torch's sort; of 2^20, 0.150, 0.112 (but the host
# 0.188) and 0.154; of 2^22, 0.58 and 0.26 with CUB.
MOST_PAIRS = 1 << 20
# Threads per block, pairs per thread, and the maximum number of bits in a digit. With 4 pairs per
# thread, 2^18 took 0.057 ms and 2^20 0.159; with 16, 0.068 and 0.149. With digits of 8 bits, 0.070
# and 0.167.
RADIX_THREADS = 256
PAIRS_PER_THREAD = 8
MOST_DIGIT_BITS = 10
# The launches of a pass. The first and the last have a block for each tile, and the second has one
# for each digit.
SORT_KERNELS = ("sort_count", "sort_offsets", "sort_move")

Pair = tuple[Slot, Slot]


def tiles_of(length: int) -> int:
    """Return the number of blocks that sort `length` pairs."""
    return -(-length // (RADIX_THREADS * PAIRS_PER_THREAD))


def digits_of(bits: int) -> list[int]:
    """Return the number of bits of the digit in each pass, for keys of `bits` bits."""
    passes = -(-bits // MOST_DIGIT_BITS)
    return [-(-(bits - i) // passes) for i in range(passes)]


def scratch_bytes(length: int, widths: Widths) -> int:
    """Return the size in bytes of the counts, without that of the pairs and their copy."""
    return 4 * (tiles_of(length) + 1) << max(digits_of(widths.bits))


def source_of(result: Pair, other: Pair, bits: int) -> tuple[Pair, Pair]:
    """Return the buffers of the unsorted pairs and the first pass; the last writes to `result`."""
    return (result, other) if len(digits_of(bits)) % 2 == 0 else (other, result)


def record_passes(
    recorder: Recorder, length: int, widths: Widths, pairs: Pair, spare: Pair
) -> Pair:
    """Record the passes, which move the pairs from one buffer to the other and back.

    Return the buffers that contain the sorted pairs: `pairs` after an even number of passes.
    """
    tiles, digits = tiles_of(length), digits_of(widths.bits)
    tile_counts = recorder.allocate(4 * tiles << max(digits))
    digit_totals = recorder.allocate(4 << max(digits))
    macros = {
        "THREADS": RADIX_THREADS,
        "PER_THREAD": PAIRS_PER_THREAD,
        "DIGIT_VALUES": 1 << MOST_DIGIT_BITS,
    }
    macros |= {"KEY_BYTES": widths.key, "PAYLOAD_BYTES": widths.payload}
    shift = 0
    for bits in digits:
        fields = *pairs, *spare, tile_counts, digit_totals, length, tiles, shift, 1 << bits
        for kernel_name, grid in zip(SORT_KERNELS, (tiles, 1 << bits, tiles), strict=True):
            recorder.launch(
                Kernel.of(kernel_name, **macros), grid, RADIX_THREADS, Arguments.of(fields)
            )
        shift += bits
        pairs, spare = spare, pairs
    return pairs
