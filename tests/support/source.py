"""Locations of the tree and of the package under test."""

from pathlib import Path

import gatherum

ROOT = Path(__file__).parents[2]
# For Pythons that tests start in other folders.
SOURCE = str(Path(gatherum.__file__).parents[1])
