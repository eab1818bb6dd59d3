"""Run commands in new processes, and a file that counts as a terminal."""

import io
import os
import subprocess
from pathlib import Path

import gatherum

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(gatherum.__file__).parents[1])}


class Terminal(io.StringIO):
    def isatty(self):
        return True


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
