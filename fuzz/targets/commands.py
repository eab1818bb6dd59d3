"""The command `gatherum check` on arbitrary bytes prints lines and never a traceback."""

import contextlib
import io
import tempfile

from gatherum._command import cli
from gatherum.directml import FeatureLevel


def checked(content: bytes, suffix: str, level: FeatureLevel) -> str:
    """Pass a file to the command line. Return a label for the outcome."""
    texts = io.StringIO(), io.StringIO()
    with tempfile.NamedTemporaryFile(suffix=suffix) as file:
        file.write(content)
        file.flush()
        with contextlib.redirect_stdout(texts[0]), contextlib.redirect_stderr(texts[1]):
            status = cli.run(["check", file.name, "--feature-level", str(level)])
    out, errors = (stream.getvalue().splitlines() for stream in texts)
    assert status in (0, 1), status
    assert len(errors) <= 1 and not any("internal error" in line for line in errors), errors
    assert out or errors, "no answer"
    return f"command {status}"
