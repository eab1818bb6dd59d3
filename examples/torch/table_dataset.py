"""Train on vectors that stay on disk: a Dataset over an open table, with labels and workers.

The table is opened once, before the workers start. Each worker gets a separate handle by a fork or
a pickle, and reads the rows of a whole batch in one call, into a tensor.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from gatherum import files

ROWS, WIDTH, BATCH, WORKERS = 2000, 32, 100, 2
Batch = tuple[Tensor, Tensor]


class Vectors(Dataset[Batch]):
    """Rows of a table, and the label of each."""

    def __init__(self, table: files.Table, labels: Tensor) -> None:
        self.table, self.labels = table, labels

    def __len__(self) -> int:
        return int(self.table.shape[0])

    def __getitem__(self, index: int) -> Batch:
        rows, labels = self.__getitems__([index])
        return rows[0], labels[0]

    def __getitems__(self, indices: list[int]) -> Batch:
        """Return a batch; DataLoader calls this once for all of its indices."""
        rows = torch.empty((len(indices), *self.table.shape[1:]))
        self.table.gather(np.array(indices), out=rows)
        return rows, self.labels[indices]


def as_it_is(batch: Batch) -> Batch:
    """Return the batch unchanged, since the dataset returns whole batches."""
    return batch


def make_data(path: Path) -> tuple[np.ndarray, Tensor]:
    """Write a table of vectors; return the table and the classes of its rows."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((ROWS, WIDTH), np.float32)
    np.save(path, vectors)
    return vectors, torch.from_numpy((vectors @ rng.standard_normal(WIDTH) > 0).astype(np.int64))


def main() -> None:
    """Train, and check the rows that the workers have read."""
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "vectors.npy")
        vectors, labels = make_data(path)
        with files.open(path, cache="128KiB") as table:
            loader = DataLoader(
                Vectors(table, labels),
                batch_size=BATCH,
                shuffle=True,
                num_workers=WORKERS,
                persistent_workers=True,
                collate_fn=as_it_is,
                pin_memory=torch.cuda.is_available(),
            )
            print(f"{train(loader, vectors)} rows of two epochs, each with its label")
            in_pinned_memory(table, vectors)


def train(loader: "DataLoader[Batch]", vectors: np.ndarray) -> int:
    """Train for a few epochs; return the number of checked rows in the first two."""
    model = torch.nn.Linear(WIDTH, 2)
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    numbers = {row.tobytes(): n for n, row in enumerate(vectors)}
    labels, checked, right = loader.dataset.labels, 0, 0.0
    for epoch in range(8):
        seen, right = set(), 0.0
        for rows, classes in loader:
            if epoch < 2:
                seen |= (batch_numbers := {numbers[row.numpy().tobytes()] for row in rows})
                assert torch.equal(labels[sorted(batch_numbers)].sort()[0], classes.sort()[0])
            optimizer.zero_grad()
            scores = model(rows)
            torch.nn.functional.cross_entropy(scores, classes).backward()
            optimizer.step()
            right += float((scores.argmax(1) == classes).sum())
        assert epoch >= 2 or len(seen) == ROWS
        checked += len(seen)
    print(f"{right / ROWS:.0%} of the rows are classified right")
    return checked


def in_pinned_memory(table: files.Table, vectors: np.ndarray) -> None:
    """Read rows into one tensor repeatedly; it is pinned if a GPU is available."""
    rows = torch.empty((4, WIDTH), pin_memory=torch.cuda.is_available())
    for start in range(0, ROWS, 500):
        table.gather(np.arange(start, start + 4), out=rows)
        assert np.array_equal(rows.numpy(), vectors[start : start + 4])


if __name__ == "__main__":
    main()
