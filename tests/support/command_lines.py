"""Run commands in new processes, and a file that counts as a terminal."""

import io
import os
import subprocess
from pathlib import Path

import numpy as np

import gatherum

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(gatherum.__file__).parents[1])}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def shell(*command, cwd=None, **environment):
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=ENVIRONMENT | environment,
        cwd=cwd,
    )
