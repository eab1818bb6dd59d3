"""Run the command ``gatherum`` with ``python -m gatherum``."""

from __future__ import annotations

import sys

from ._command.startup import ends_at_once, open_streams, say

NEEDED = ("click", "rich")


def main() -> int:
    """Run the command line and return its exit status.

    Returns
    -------
    int
        0: success. 1: an error in the data, or a missing component. 2: wrong usage, or an invalid
        environment variable. 130: interrupted.
    """
    open_streams()
    try:
        with ends_at_once():
            import click  # noqa: F401
            import rich  # noqa: F401

            from ._command.cli import run
    except ModuleNotFoundError as missing:
        if missing.name not in NEEDED:
            raise
        say(f"the command line needs {missing.name}: pip install click rich")
        return 1
    except ValueError as wrong_setting:  # an invalid environment variable
        say(str(wrong_setting).removeprefix("gatherum: "))
        return 2
    return run()


if __name__ == "__main__":
    sys.exit(main())
