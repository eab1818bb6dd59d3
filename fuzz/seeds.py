"""Write the initial inputs of the fuzz targets, the same every time:

    python fuzz/seeds.py              # of every target
    python fuzz/seeds.py dispatch     # of these

The script runs the seeds of each target one after the other, and keeps those that reach something
new in fuzz/corpus/TARGET.zip, named after what they reach. Inputs with other names failed once, and
are kept.
"""

import sys
from itertools import islice
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "support")]

import corpus  # noqa: E402
from targets import TARGETS, target  # noqa: E402

# Number of seeds to try, and number of inputs to keep for each label.
TRIED = 12_000
ALIKE = {"calls": 1, "readers": 12, "stores": 1, "descs": 4, "dispatch": 1, "models": 2}


def main() -> None:
    """Write the seeds of the named targets, or of all targets."""
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
