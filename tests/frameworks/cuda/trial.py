"""Try tests/device/first.py as on a machine with a GPU: with `gpu_double`, importing torch once.

    python tests/frameworks/cuda/trial.py KIT OUT

The steps are the same as on a GPU. A fork of this process, which has the doubles, runs each.
"""

import os
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "device"))

import first
import gpu_double


def forked(step, limit, variables, output):
    """Run a step in a fork. Return a description of its failure, as `first.status` does."""
    sys.stdout.flush()
    if (child := os.fork()) == 0:
        status = 1
        try:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            os.environ.update(variables | dict(step.variables))
            sys.path[:0] = variables["PYTHONPATH"].split(os.pathsep)
            os.chdir(first.TREE)
            status = run(step.command)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return f"ended with status {ended}" if ended else ""


def run(command):
    """Run the part of a command after the interpreter and its prefix."""
    program = command[command.index(sys.executable) + 1 :]
    try:
        gpu_double.run_program(*program)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


if __name__ == "__main__":
    gpu_double.double()
    first.status = forked
    sys.exit(first.main())
