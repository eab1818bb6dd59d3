"""Choose the sizes of launches: threads, blocks, and the bits of offsets."""

from __future__ import annotations

# Threads per block, and chunks in flight per thread in movement kernels. On an H100 (2026-11-26), a
# gather of rows of 512 bytes took 0.383 ms with these values, 0.382 with 128 and 2, and 0.435 with
# 256 and 8; single items took 2.27, 2.29 and 2.27 ms.
THREADS = 256
CHUNKS_PER_THREAD = 4
# The number of threads in a warp.
WARP = 32
# Maximum blocks of a grid per multiprocessor; larger launches give each thread more work. On an
# H100, scatters of rows took 0.478 ms with this value and 0.493 without a limit.
BLOCKS_PER_PROCESSOR = 64
# The most flat numbers that the threads of a grid process at a time. Not measured, except for
# gathers of single items (movement.py).
MOST_NUMBERS_OF_GRID = 1 << 27
# Offsets have 32 bits if all numbers of a launch are below this limit. A thread's flat number can
# exceed the total by one grid, and stays below 2**31.
OFFSET_LIMIT = (1 << 31) - MOST_NUMBERS_OF_GRID


def offset_bits(largest: int) -> int:
    """Return the number of bits of offsets in a launch whose numbers are at most `largest`."""
    return 32 if largest < OFFSET_LIMIT else 64


def block_count(processors: int, total: int, per_block: int, most: int | None = None) -> int:
    """Return the number of blocks for `total` flat numbers, at most `most`."""
    return min(-(-total // per_block), processors * BLOCKS_PER_PROCESSOR if most is None else most)
