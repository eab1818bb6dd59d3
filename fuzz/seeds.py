"""Write the inputs that fuzzing begins with, the same every time:

    python fuzz/seeds.py              # of every target
    python fuzz/seeds.py dispatch     # of these

A target's own seeds are run one after the other. Those that show something new are kept in
fuzz/corpus/TARGET.zip, named after what they show. Inputs with other names have once failed, and
stay.
"""

import sys
from itertools import islice
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

import corpus  # noqa: E402
from targets import TARGETS, target  # noqa: E402

# Seeds that are tried, and inputs that are kept of those with equal labels.
TRIED = 12_000
ALIKE = {"calls": 1, "readers": 12, "stores": 1, "descs": 4, "dispatch": 1, "models": 2}


def main() -> None:
    """Write the seeds of the targets that are named, or of all."""
    for name in sys.argv[1:] or TARGETS:
        inputs = {
            kept: data for kept, data in corpus.read(name).items() if not kept.startswith("seed-")
        }
        counted: dict[str, int] = {}
        for data in islice(target(name).seeds(), TRIED):
            label = target(name).run(data)
            counted[label] = counted.get(label, 0) + 1
            if counted[label] <= ALIKE[name]:
                number = counted[label]
                inputs[f"seed-{label.strip().replace(' ', '-')}-{number}"] = data
        corpus.write(name, inputs)
        print(f"{name}: {len(inputs)} inputs, {sum(map(len, inputs.values()))} bytes")


if __name__ == "__main__":
    main()
