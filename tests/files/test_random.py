"""Random operators, shapes, formats, chunkings and budgets against the operators in memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from files.storage import FORMATS, bits, choose_pass, get, leftovers, put
from files.test_equality import DTYPES, FUNCTIONS, numbers
from gatherum._model.dtypes import is_reducible
from gatherum._model.modes import MODES
from gatherum._model.reductions import FOLDS
from gatherum._plans.plans import apply
from gatherum.files.durable import build
from gatherum.files.strategies import table_pass

pytestmark = pytest.mark.usefixtures("quick_sync")


class Case:
    """One random call."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.op = str(rng.choice(sorted(FUNCTIONS)))
        rank = int(rng.integers(1, 4))
        most = (9000, 120, 24)[rank - 1]
        self.shape = tuple(int(n) for n in rng.integers(1, most, rank))
        self.dtype = str(rng.choice(DTYPES))
        self.call: dict[str, Any] = {
            "mode": str(rng.choice(MODES)), "negative": bool(rng.random() < 0.7),
        }  # fmt: skip
        self.operands = [numbers(rng, self.shape, self.dtype), *self.others(rank)]

    def indices(self, shape: tuple[int, ...], size: int) -> NDArray[Any]:
        """Return indices, some out of bounds if the mode allows it, some very frequent."""
        beyond = 0 if self.call["mode"] == "raise" else 3
        low = (-size if self.call["negative"] else 0) - beyond
        values = self.rng.integers(low, size + beyond, shape)
        if self.rng.random() < 0.3 and values.size:
            values = np.where(self.rng.random(shape) < 0.8, values.flat[0], values)
        return values.astype(str(self.rng.choice(["<i8", "<i4", "<i2", ">i4"])))

    def others(self, rank: int) -> list[NDArray[Any]]:
        rng, shape = self.rng, self.shape
        if self.op.endswith("_nd"):
            batch = int(rng.integers(0, rank)) if rng.random() < 0.4 else 0
            depth = int(rng.integers(0, rank - batch + 1))
            more = (int(rng.integers(1, 600 if rank < 3 else 60)), int(rng.integers(1, 4)))
            lead = shape[:batch] + more[: int(rng.integers(0, 3))]
            parts = [self.indices(lead, n) for n in shape[batch : batch + depth]]
            indices = np.stack(parts, -1) if parts else np.zeros((*lead, 0), np.int64)
            self.call["batch_dims"] = batch
            target = lead + shape[batch + depth :]
        else:
            axis = int(rng.integers(-rank, rank))
            self.call["axis"] = axis
            if self.op in ("gather", "scatter_slices"):
                several = tuple(int(n) for n in rng.integers(1, 40, int(rng.integers(0, 3))))
                indices = self.indices(several, shape[axis])
                target = shape[: axis % rank] + several + shape[axis % rank + 1 :]
            else:
                lead = [int(rng.integers(0, n + 1)) for n in shape]
                lead[axis] = int(rng.integers(1, 3000 if rank == 1 else 60))
                indices = self.indices(tuple(lead), shape[axis])
                target = indices.shape
        if not self.op.startswith("scatter"):
            return [indices]
        self.call["reduction"] = self.reduction()
        self.call["include_self"] = bool(rng.random() < 0.5)
        if rng.random() < 0.3:
            target = tuple(1 if rng.random() < 0.5 else n for n in target)
        return [indices, numbers(rng, target, self.dtype)]

    def reduction(self) -> str:
        dtype = np.dtype(self.dtype)
        known = ["none", *(fold for fold in FOLDS if is_reducible(dtype, fold))]
        return str(self.rng.choice(known))

    def forms(self) -> list[str]:
        """Choose formats. Only indices may be byte-swapped: such data cannot be reduced."""
        plain = [file_format for file_format in FORMATS if file_format != "big-endian"]
        return [str(self.rng.choice(plain)) for _ in self.operands]


@pytest.mark.parametrize(
    "seed",
    [*range(90), *(pytest.param(seed, marks=pytest.mark.release) for seed in range(90, 180))],
)
def test_any_call_gives_the_bits_of_the_operator_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    case = Case(seed)
    rng, forms = case.rng, case.forms()
    if any(operand.ndim == 0 or ">" in operand.dtype.str for operand in case.operands):
        forms = ["npy"] * 3
    if rng.random() < 0.5:
        choose_pass(monkeypatch, True)
    monkeypatch.setattr(table_pass, "GAP_BYTES", int(rng.choice([1, 20_000, 1 << 28])))
    monkeypatch.setattr(build, "SYNC_BYTES", int(rng.choice([1, 20_000, 1 << 28])))
    names = ("table", "indices", "updates")
    paths = [
        put(tmp_path, name, operand, file_format)
        for name, operand, file_format in zip(names, case.operands, forms, strict=False)
    ]
    in_place = case.op.startswith("scatter") and "npz" not in paths[0] and rng.random() < 0.4
    out = str(tmp_path / str(rng.choice(["out.npy", "out.zarr", "out.safetensors:t"])))
    out, extra = (paths[0], {"in_place": True}) if in_place else (out, {})
    memory = int(rng.choice([200_000, 400_000, 1 << 30]))
    if not any("zarr" in path for path in paths):
        memory = int(rng.choice([65_536, memory]))
    if any(".zarr" in path or ".h5" in path for path in paths):
        # A compressed chunk needs its size four times.
        memory = max(memory, 4 * max(operand.nbytes for operand in case.operands))
    expected = apply(case.op, *case.operands, **case.call)
    FUNCTIONS[case.op](*paths, out, memory=memory, **case.call, **extra)
    assert bits(get(out)) == bits(expected)
    assert leftovers(tmp_path) == []
