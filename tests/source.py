"""Location of the package under test, for Pythons that tests start in other folders."""

from pathlib import Path

import gatherum

SOURCE = str(Path(gatherum.__file__).parents[1])
