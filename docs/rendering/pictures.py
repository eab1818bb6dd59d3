"""Draw pictures of calls with `gatherum.explain` during the build of the pages."""

import re

import numpy as np

import gatherum
from gatherum._model.operators import OPERATORS

# A picture is light or dark like the reader's system. A page also has a switch for this.
DARK = re.compile(r"@media\s*\(prefers-color-scheme:\s*dark\)\s*\{((?:[^{}]*\{[^{}]*\})*)\s*\}")


def render(call: str) -> str:
    """Return the picture of a call, such as ``gather(np.arange(12).reshape(3, 4), [2, 0])``."""
    operators = {name: _explain(name) for name in OPERATORS}
    return figure(eval(call, {"np": np, **operators}).svg())


def figure(picture: str) -> str:
    """Return HTML with a picture that is dark if the page is dark."""
    return f"````{{raw}} html\n<figure>\n{DARK.sub(_dark, picture)}\n</figure>\n````\n"


def _explain(name: str):
    return lambda *operands, **attributes: gatherum.explain(name, *operands, **attributes)


def _dark(rules: re.Match[str]) -> str:
    """Apply the dark rules to dark pages, and to automatic pages on dark systems."""
    inside = rules[1]
    switched = _under('body[data-theme="dark"]', inside)
    following = _under('body[data-theme="auto"]', inside)
    return f"{switched}@media (prefers-color-scheme:dark){{{following}}}"


def _under(ancestor: str, rules: str) -> str:
    return re.sub(
        r"([^{}]+)(\{[^{}]*\})",
        lambda rule: ",".join(f"{ancestor} {one.strip()}" for one in rule[1].split(",")) + rule[2],
        rules,
    )
