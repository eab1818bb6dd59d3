"""Compile every variant of every kernel with NVRTC, and tabulate the results. No GPU is needed.

    python tests/frameworks/cuda/compile_table.py            # prints it: a quarter of an hour
    python tests/frameworks/cuda/compile_table.py --write    # writes it to its page
    python tests/frameworks/cuda/compile_table.py --only gather --architectures 75 90

With `--only`, `--write` keeps the rows of the other kernels: their code must be the same as before.
A variant that does not compile ends the program. `test_compile_table.py` compiles with the same
functions, and checks that the table of the page matches the current sources.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from variants import AXES, variants

from gatherum.cuda import kernels
from gatherum.cuda.device import COMPILER_OPTIONS, Kernel
from gatherum.cuda.driver import Compiler

ARCHITECTURES = (75, 80, 90, 100, 120)
PAGE = Path(__file__).parents[3] / "docs" / "decisions" / "cuda-kernels.md"
BEGIN = "<!-- Written by `python tests/frameworks/cuda/compile_table.py --write`. -->\n"
END = "<!-- End of the generated table. -->\n"


class Compiled(NamedTuple):
    """Code, and the assembler's log."""

    code: bytes
    log: str

    def number(self, words: str) -> int:
        """Return the number in front of some words of the log, or 0 without them."""
        match = re.search(rf"(\d+) {words}", self.log)
        return int(match[1]) if match else 0


class Usage(NamedTuple):
    """The resources of a multiprocessor that a kernel needs: per thread, and shared per block."""

    registers: int
    stack: int
    spilled: int
    shared: int


def compiled(compiler: Compiler, kernel: Kernel, architecture: int, output_type: str) -> Compiled:
    """Compile a kernel to PTX, or to machine code if `kind` is CUBIN."""
    sources = kernels.sources()
    headers = {name: text for name, text in sources.items() if name.endswith(".cuh")}
    program = compiler.call(
        "nvrtcCreateProgram",
        sources[f"{kernel.name}.cu"].encode(),
        f"{kernel.name}.cu".encode(),
        len(headers),
        [text.encode() for text in headers.values()],
        [name.encode() for name in headers],
    )
    real = "sm" if output_type == "CUBIN" else "compute"
    options = [*COMPILER_OPTIONS, f"--gpu-architecture={real}_{architecture}"]
    options += [f"-D{name}={value}" for name, value in kernel.macros]
    options += ["--ptxas-options=-v"] if output_type == "CUBIN" else []
    status, *_ = compiler.api.nvrtcCompileProgram(program, len(options), _encoded(options))
    log = _text(compiler, program, "ProgramLog")
    if status != compiler.api.nvrtcResult.NVRTC_SUCCESS:
        sys.exit(f"{kernel} for {architecture}: {log}")
    code = bytes(compiler.call(f"nvrtcGet{output_type}Size", program))
    compiler.call(f"nvrtcGet{output_type}", program, code)
    compiler.call("nvrtcDestroyProgram", program)
    return Compiled(code, log)


def _encoded(options: Iterable[str]) -> list[bytes]:
    return [option.encode() for option in options]


def _text(compiler: Compiler, program: Any, what: str) -> str:
    text = bytes(compiler.call(f"nvrtcGet{what}Size", program))
    compiler.call(f"nvrtcGet{what}", program, text)
    return text.rstrip(b"\0\n ").decode()


def usage(compiler: Compiler, kernel: Kernel, architecture: int) -> Usage:
    """Return the resources that a kernel needs on an architecture, according to the assembler."""
    result = compiled(compiler, kernel, architecture, "CUBIN")
    if not result.code.startswith(b"\x7fELF") or "Used" not in result.log:
        sys.exit(f"{kernel} for {architecture}: no machine code, or no word of it: {result.log}")
    registers = re.search(r"Used (\d+) registers", result.log)
    return Usage(
        int(registers[1]) if registers else 0,
        result.number("bytes stack frame"),
        result.number("bytes spill stores") + result.number("bytes spill loads"),
        result.number("bytes smem"),
    )


def row(compiler: Compiler, name: str, architectures: Iterable[int]) -> str:
    """Compile all variants of a kernel, and return its row of the table."""
    cells, all_of_it = [], list(dict.fromkeys(variants(name)))
    shared = 0
    for architecture in architectures:
        usages = [usage(compiler, kernel, architecture) for kernel in all_of_it]
        few, most = min(u.registers for u in usages), max(u.registers for u in usages)
        memory = max(u.stack + u.spilled for u in usages)
        cells.append((f"{few}-{most}" if few < most else f"{most}")
                     + (f", {memory} bytes of stack" if memory else ""))  # fmt: skip
        shared = max(shared, *(u.shared for u in usages))
        print(f"{name}, sm_{architecture}: {cells[-1]}", file=sys.stderr, flush=True)
    return f"| `{name}` | {len(all_of_it)} | {shared} | {' | '.join(cells)} |"


def heading(architectures: Iterable[int]) -> str:
    """Return the header of the table."""
    names = [f"sm_{number}" for number in architectures]
    return (f"| kernel | variants | shared memory | {' | '.join(names)} |\n"
            f"|---|--:|--:|{'--:|' * len(names)}")  # fmt: skip


def digest() -> str:
    """Return a digest of the kernels' sources without their comments."""
    text = "".join(name + text for name, text in sorted(kernels.sources().items()))
    lines = (re.sub(r"//.*|\s+", " ", line).strip() for line in text.splitlines())
    text = "\n".join(line for line in lines if line)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def table(compiler: Compiler, names: Iterable[str], architectures: Iterable[int]) -> str:
    """Compile everything. Return the table and the line about it."""
    rows = [row(compiler, name, architectures) for name in names]
    today = datetime.datetime.now(datetime.UTC).date()
    version = compiler.version()
    line = f"Compiled by NVRTC {version} on {today}, from the sources with the digest {digest()}."
    return "\n".join([line, "", heading(architectures), *rows, ""])


def written(page: str, text: str) -> str:
    """Return a page with the text between the marks replaced."""
    before, _, following = page.partition(BEGIN)
    _, end, after = following.partition(END)
    if not end:
        sys.exit(f"{PAGE}: the marks of the table are not there")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def with_other_rows(page: str, text: str) -> str:
    """Return a table with the rows that only the table of a page has, too."""
    old, new = (dict(re.findall(r"^\| `(\w+)` (.*)$", each, re.MULTILINE)) for each in (page, text))
    head = text.partition("| `")[0]
    rows = (f"| `{name}` {cells}" for name, cells in sorted((old | new).items()))
    return "\n".join([head.rstrip("\n"), *rows, ""])


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=sorted(AXES), default=sorted(AXES))
    parser.add_argument("--architectures", nargs="+", type=int, default=ARCHITECTURES)
    parser.add_argument("--write", action="store_true", help=f"put it into {PAGE.name}")
    options = parser.parse_args()
    from cuda.bindings import nvrtc

    result = table(Compiler(nvrtc), options.only, options.architectures)
    print(result)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        if options.only != sorted(AXES):
            result = with_other_rows(page.partition(BEGIN)[2].partition(END)[0], result)
        PAGE.write_text(written(page, result), encoding="utf-8")


if __name__ == "__main__":
    main()
