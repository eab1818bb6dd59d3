"""Compare gatherum on JAX arrays with ``jax.numpy``, eager and under ``jax.jit``.

    python benchmarks/jax_bench.py                       # everything, about three minutes
    python benchmarks/jax_bench.py --only eager --rounds 25
    python benchmarks/jax_bench.py --scale 0.1 --threads 2

Both libraries run in turns in one process, alternating which runs first. A time is the median of
the rounds, followed by the quartiles of the ratio. If JAX has several methods, the fastest is
timed. Results are compared first: moved data must be equal, sums may differ by rounding. Each call
waits for its result, which is dropped before the next call. "jax / ours" is the speedup of
gatherum, followed by its goal.
"""

import argparse
import ctypes
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from turns import Call, Case, measured

import gatherum
import gatherum.jax as gjax


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes of large cases")
    parser.add_argument("--threads", type=int, default=2, help="ours; JAX takes all processors")
    parser.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="cpu: the time of all threads, which other processes change less",
    )
    options = parser.parse_args()
    clock = time.process_time if options.clock == "cpu" else time.perf_counter
    gatherum.set_num_threads(options.threads)
    print(f"jax {jax.__version__}, gatherum {gatherum.__version__}, {options.threads} threads, "
          f"{options.rounds} rounds, scale {options.scale:g}, "
          f"{options.clock} time\n")  # fmt: skip
    print("| case | jax | ours | jax / ours | goal |\n|---|---:|---:|---:|---:|")
    rng = np.random.default_rng(0)
    for make in (eager, jitted, inside, rows, elements, bins, row_sums):
        if options.only in make.__name__:
            for case in make(options.scale, rng):
                check(case)
                print(measured(case, options.rounds, clock), flush=True)
    return 0


def check(case: Case) -> None:
    """Compare the arrays that all calls return."""
    mine = np.asarray(case.ours())
    for peer in case.peers:
        np.testing.assert_allclose(mine, peer(), rtol=case.tolerance, atol=case.tolerance)


def waited(call: Callable[..., jax.Array], *operands: jax.Array) -> Call:
    """Return a call that waits for its result."""
    return lambda: call(*operands).block_until_ready()


def eager(_: float, rng: np.random.Generator) -> Iterator[Case]:
    """Calls outside of jit, which measure only the overhead."""
    table, rows_ = jnp.asarray(rng.standard_normal(20), "f4"), jnp.asarray(rng.integers(0, 20, 5))
    take = waited(jnp.take, table, rows_)
    yield Case("eager: gatherum.jax.gather of 5", 1 / 1.1, waited(gjax.gather, table, rows_),
               [take], 2000)  # fmt: skip
    yield Case("eager: gatherum.gather of 5", 1 / 1.1, waited(gatherum.gather, table, rows_),
               [take], 2000)  # fmt: skip


def jitted(_: float, rng: np.random.Generator) -> Iterator[Case]:
    """The same calls, compiled."""
    table, rows_ = jnp.asarray(rng.standard_normal(20), "f4"), jnp.asarray(rng.integers(0, 20, 5))
    yield Case("jit: gather of 5", 1 / 1.15, waited(jax.jit(gjax.gather), table, rows_),
               [waited(jax.jit(jnp.take), table, rows_)], 2000)  # fmt: skip


CUSTOM_CALL = r"""
#include <cstring>
#include "xla/ffi/api/ffi.h"
using namespace xla::ffi;
static Error copy(AnyBuffer from, AnyBuffer, Result<AnyBuffer> to) {
  std::memcpy(to->untyped_data(), from.untyped_data(), to->size_bytes());
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(copied, copy,
                              Ffi::Bind().Arg<AnyBuffer>().Arg<AnyBuffer>().Ret<AnyBuffer>());
"""


def inside(_: float, rng: np.random.Generator) -> Iterator[Case]:
    """One of 200 consecutive calls inside of jit, compared with a custom call of XLA that copies.
    The goal is 0.2 us per call, for any ratio.
    """
    calls = 200
    table, rows_ = jnp.asarray(rng.standard_normal(8), "f4"), jnp.asarray(rng.permutation(8))
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "copied.cc"), Path(folder, "copied.so")
        source.write_text(CUSTOM_CALL)
        command = ["g++", "-std=c++17", "-O2", "-w", "-fPIC", "-shared", "-o", library, source]
        subprocess.run([*command, f"-I{jax.ffi.include_dir()}"], check=True)
        handler = jax.ffi.pycapsule(ctypes.cdll.LoadLibrary(str(library)).copied)
    jax.ffi.register_ffi_target("copied", handler, platform="cpu")
    copied = jax.ffi.ffi_call("copied", jax.ShapeDtypeStruct(table.shape, table.dtype))

    def repeated(call: Callable[..., jax.Array]) -> Call:
        def run(table: jax.Array, rows_: jax.Array) -> jax.Array:
            for _ in range(calls):
                table = call(table, rows_)
            return table

        return waited(jax.jit(run), table, rows_)

    ours, theirs = repeated(gjax.gather), repeated(copied)
    first = repeated(lambda table, rows_: table[rows_])
    np.testing.assert_array_equal(ours(), first())
    yield Case("inside jit: 200 gathers of 8", 0.0, ours, [theirs], 20, tolerance=1e9)


def rows(scale: float, rng: np.random.Generator) -> Iterator[Case]:
    """1M rows of 64 from a table of 1M rows."""
    n = int(1_000_000 * scale)
    table = jnp.asarray(rng.standard_normal((n, 64), "f4"))
    places = jnp.asarray(rng.integers(0, n, n), "i4")
    methods = (lambda t, i: jnp.take(t, i, 0), lambda t, i: t[i],
            lambda t, i: jnp.take(t, i, 0, mode="clip"))  # fmt: skip
    peers = [waited(jax.jit(method), table, places) for method in methods]
    yield Case("rows: 1M x 64", 2.5, waited(jax.jit(gjax.gather), table, places), peers)


def elements(scale: float, rng: np.random.Generator) -> Iterator[Case]:
    """One element of an 8192 x 4096 table for each of as many indices, along axis 0."""
    n, width = int(8192 * scale), 4096
    table = jnp.asarray(rng.standard_normal((n, width), "f4"))
    places = jnp.asarray(rng.integers(0, n, (n, width)), "i4")
    methods = (lambda t, i: jnp.take_along_axis(t, i, 0),
            lambda t, i: jnp.take_along_axis(t, i, 0, mode="clip"))  # fmt: skip
    peers = [waited(jax.jit(method), table, places) for method in methods]
    yield Case("elements: axis 0 of 8192 x 4096", 1.8,
               waited(jax.jit(gjax.gather_elements), table, places), peers)  # fmt: skip


def bins(scale: float, rng: np.random.Generator) -> Iterator[Case]:
    """20M adds into 1M bins."""
    n, count = int(1_000_000 * scale), int(20_000_000 * scale)
    zeros = jnp.zeros(n, "f4")
    places = jnp.asarray(rng.integers(0, n, count), "i4")
    updates = jnp.asarray(rng.standard_normal(count, "f4"))
    ours = jax.jit(lambda z, i, u: gjax.scatter_slices(z, i, u, reduction="add"))
    theirs = jax.jit(lambda z, i, u: z.at[i].add(u))
    yield Case("bins: 20M into 1M, .at[].add", 1.3, waited(ours, zeros, places, updates),
               [waited(theirs, zeros, places, updates)])  # fmt: skip
    summed = jax.jit(lambda i, u: gjax.scatter_slices(jnp.zeros(n, "f4"), i, u, reduction="add"))
    segment = jax.jit(lambda i, u: jax.ops.segment_sum(u, i, n))
    yield Case("bins: 20M into 1M, segment_sum", 1.0, waited(summed, places, updates),
               [waited(segment, places, updates)])  # fmt: skip


def row_sums(scale: float, rng: np.random.Generator) -> Iterator[Case]:
    """1M rows of 64 added into 100k."""
    n, count = int(100_000 * scale), int(1_000_000 * scale)
    zeros = jnp.zeros((n, 64), "f4")
    places = jnp.asarray(rng.integers(0, n, count), "i4")
    updates = jnp.asarray(rng.standard_normal((count, 64), "f4"))
    ours = jax.jit(lambda z, i, u: gjax.scatter_slices(z, i, u, reduction="add"))
    theirs = jax.jit(lambda z, i, u: z.at[i].add(u))
    yield Case("row sums: 1M x 64 into 100k", 1.0, waited(ours, zeros, places, updates),
               [waited(theirs, zeros, places, updates)])  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
