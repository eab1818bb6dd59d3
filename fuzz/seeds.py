"""Write the inputs that fuzzing begins with, the same files every time:

    python fuzz/seeds.py              # of every target
    python fuzz/seeds.py dispatch     # of these

A target's own seeds are run one after the other, and those that show something new are kept: in
fuzz/corpus/TARGET, named after what they show. Files with other names are left alone: inputs that
have once failed.
"""

import sys
from itertools import islice
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from targets import TARGETS, target  # noqa: E402

# Seeds that are tried, and inputs that are kept of what looks alike.
TRIED = 12_000
ALIKE = {"calls": 1, "readers": 12, "stores": 1, "descs": 4, "dispatch": 1, "models": 2}


def main() -> None:
    """Write the seeds of the targets that are named, or of all."""
    for name in sys.argv[1:] or TARGETS:
        folder = HERE / "corpus" / name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("seed-*"):
            old.unlink()
        seen: dict[str, int] = {}
        for data in islice(target(name).seeds(), TRIED):
            label = target(name).run(data)
            seen[label] = seen.get(label, 0) + 1
            if seen[label] <= ALIKE[name]:
                number = seen[label]
                (folder / f"seed-{label.strip().replace(' ', '-')}-{number}").write_bytes(data)
        files = list(folder.iterdir())
        print(f"{name}: {len(files)} inputs, {sum(file.stat().st_size for file in files)} bytes")


if __name__ == "__main__":
    main()
