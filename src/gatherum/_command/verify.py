"""Verify that this installation computes the same results as every other one.

A digest covers all results of one row of the cases: an operator, a dtype and a reduction. The
expected digests are in the package. ``python -m gatherum._command.verify`` prints the digests of
this machine in the same form, to update them after a change of the cases.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gatherum
from gatherum._core import Reduction, is_exact
from gatherum._model.reductions import FOLDS
from gatherum._system import native

from . import verify_cases
from .verify_cases import VerifyCase

EXPECTED = Path(__file__).parent / "digests.json"


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of `verify`.

    Attributes
    ----------
    checked : int
        The number of rows whose digest was compared.
    different : tuple of str
        The rows whose digest differs from the expected one, as ``operator/dtype/reduction``.
    skipped : tuple of str
        The rows of a dtype that is not installed (bfloat16, without ml_dtypes).
    level : str
        The instruction-set level that ran.
    threads : int
        The number of threads that calls may have used.
    device : str
        The device that ran the calls; "" for the CPU.
    """

    checked: int
    different: tuple[str, ...]
    skipped: tuple[str, ...]
    level: str
    threads: int
    device: str = ""

    @property
    def agrees(self) -> bool:
        """Whether every digest equals the expected one."""
        return not self.different

    def __str__(self) -> str:
        """Return the text that the command prints."""
        lines = [f"{name}: differs from the published digest" for name in self.different]
        equal_count = self.checked - len(self.different)
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        where = self.device or f"level {self.level}, {threads}"
        lines.append(f"{equal_count} of {self.checked} digests as published ({where})")
        if self.skipped:
            lines.append(f"{len(self.skipped)} of bfloat16 not checked: needs ml_dtypes")
        return "\n".join(lines)


def verify(device: str = "cpu") -> Verification:
    """Compute the digest of every row of the cases, and compare it with the published one.

    Equal digests mean equal bits for every operator, dtype, reduction, mode and index dtype on this
    processor, with the current number of threads. It takes several seconds.

    Parameters
    ----------
    device : str
        ``"cpu"``, or ``"cuda"`` to run the same calls on a CUDA device, with PyTorch tensors if
        PyTorch is installed, and with CuPy arrays otherwise.

    Returns
    -------
    Verification
        The number of rows, and the rows that differ.
    """
    expected = json.loads(EXPECTED.read_text())
    elsewhere = _on_cuda() if device == "cuda" else None
    if elsewhere:  # CUDA kernels have no exact sums
        exact = [name for name in FOLDS if is_exact(Reduction[name])]
        expected = {row: expected[row] for row in expected if row.split("/")[2] not in exact}
    computed = digests(elsewhere or gatherum, expected if elsewhere else None)
    return Verification(
        checked=len(computed),
        different=tuple(name for name, digest in computed.items() if digest != expected.get(name)),
        skipped=tuple(sorted(expected.keys() - computed.keys())),
        level=native.level(),
        threads=native.get_num_threads(),
        device=elsewhere.name if elsewhere else "",
    )


def _on_cuda() -> Any:
    """Return the six functions of the first framework that has a CUDA device here."""
    for framework, module in (("torch", "torch.cuda"), ("cupy", "cuda.host_transfer")):
        if find_spec(framework):
            functions = import_module(f"gatherum.{module}").functions()
            if functions is not None:
                return functions
    from gatherum.cuda import errors as cuda_errors

    raise cuda_errors.no_cuda_arrays()


def digests(functions: Any = gatherum, among: Iterable[str] | None = None) -> dict[str, str]:
    """Return the digest of every row whose dtype is installed, by ``operator/dtype/reduction``.

    `among` lists the rows to compute; None means all rows.
    """
    return {
        f"{op}/{name}/{reduction}": row_digest(op, dtype, reduction, functions)
        for op, name, reduction in verify_cases.case_rows()
        if (dtype := verify_cases.dtype_named(name)) is not None
        and (among is None or f"{op}/{name}/{reduction}" in among)
    }


def row_digest(op: str, dtype: np.dtype[Any], reduction: str, functions: Any = gatherum) -> str:
    """Return the digest of all results of one row: 32 hexadecimal digits.

    Examples
    --------
    >>> row_digest("gather", np.dtype("int8"), "none")
    '9e4b47259732ee0ea098f5767b55097e'
    """
    digest = hashlib.blake2b(digest_size=16)
    for calls in (verify_cases.small_calls, verify_cases.large_calls):
        add_answers(digest, calls(op, dtype, reduction), functions)
    return digest.hexdigest()


def add_answers(
    digest: hashlib.blake2b, calls: Iterable[VerifyCase], functions: Any = gatherum
) -> None:
    """Add the results of calls, or the exceptions that they raise, to a digest.

    Parameters
    ----------
    digest : hashlib.blake2b
        The digest to update.
    calls : iterable of Case
        The calls.
    functions : object
        An object with the six functions as attributes, such as another implementation to compare.
    """
    for call in calls:
        try:
            answer = getattr(functions, call.op)(*call.operands, **call.attributes)
        except IndexError:
            digest.update(b"IndexError")
        else:
            digest.update(repr(answer.shape).encode())
            digest.update(little_endian(answer))


def little_endian(answer: NDArray[Any]) -> bytes:
    """Return the bytes of an array in little-endian order."""
    part_count = 2 if answer.dtype.kind == "c" else 1
    unsigned = np.ascontiguousarray(answer).reshape(-1).view(f"u{answer.itemsize // part_count}")
    return unsigned.astype(unsigned.dtype.newbyteorder("<"), copy=False).tobytes()


if __name__ == "__main__":
    json.dump(digests(), sys.stdout, indent=0)
    print()
