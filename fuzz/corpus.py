"""The initial inputs of the fuzz targets: one archive per target, fuzz/corpus/TARGET.zip.

python fuzz/corpus.py add calls FILE...    # keep inputs that found something, under their names
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

__all__ = ["FOLDER", "read", "write"]

FOLDER = Path(__file__).resolve().parent / "corpus"


def read(target: str) -> dict[str, bytes]:
    """Return the inputs of a target, keyed by name."""
    with zipfile.ZipFile(FOLDER / f"{target}.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(target: str, inputs: dict[str, bytes]) -> None:
    """Write the inputs of a target. Equal inputs produce equal archives."""
    with zipfile.ZipFile(FOLDER / f"{target}.zip", "w") as archive:
        for name, data in sorted(inputs.items()):
            entry = zipfile.ZipInfo(name, date_time=(2026, 1, 1, 0, 0, 0))
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)


def main() -> None:
    """Add files to the archive of a target."""
    word, target, *files = sys.argv[1:]
    if word != "add":
        raise SystemExit(__doc__)
    write(target, read(target) | {Path(file).name: Path(file).read_bytes() for file in files})


if __name__ == "__main__":
    main()
