"""Write the modules that repeat the signatures of functions, or the names in their tables.

``python tools/signatures`` reads the hand-written functions and writes all generated modules. It
also copies the shared parts of the docstrings of the gathers, and of the scatters. With
``--check`` it writes nothing, prints the modules that would change, and exits with status 1 if
there are any.
"""

import sys
from pathlib import Path

import files
import frameworks
import function_names
import overloads
import shared_docstrings
import stores
from model import ROOT

PARTS = (shared_docstrings, function_names, overloads, frameworks, files, stores)


def stale_files(*, write: bool) -> list[Path]:
    """Return the generated modules whose text is not current. Write their text if asked to."""
    stale = []
    for part in PARTS:
        for path, text in part.files().items():
            if not path.exists() or path.read_text() != text:
                stale.append(path)
                if write:
                    path.write_text(text)
    return stale


def main(arguments: list[str]) -> int:
    """Run the command."""
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    stale = stale_files(write=not arguments)
    for path in stale:
        print(path.relative_to(ROOT))
    return 1 if arguments and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
