"""Write the two files of the README: a table of the planets, and the rows to pick from it.

Figures: NASA's Planetary Fact Sheet, https://nssdc.gsfc.nasa.gov/planetary/factsheet/
"""

from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
PLANETS = np.array(
    [
        ("Mercury", 4879, 57.9, 4222.6),
        ("Venus", 12104, 108.2, 2802.0),
        ("Earth", 12756, 149.6, 24.0),
        ("Mars", 6792, 228.0, 24.7),
        ("Jupiter", 142984, 778.5, 9.9),
        ("Saturn", 120536, 1432.0, 10.7),
        ("Uranus", 51118, 2867.0, 17.2),
        ("Neptune", 49528, 4515.0, 16.1),
    ],
    dtype=[("name", "U7"), ("diameter_km", "f8"), ("distance_gm", "f8"), ("day_hours", "f8")],
)

np.save(FOLDER / "planets.npy", PLANETS)
np.save(FOLDER / "shortest_days.npy", np.argsort(PLANETS["day_hours"])[:4].astype(np.int32))
