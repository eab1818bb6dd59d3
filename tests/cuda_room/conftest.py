"""The shim is a package of its own, for the tests of this folder and for `nox -s cuda`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
