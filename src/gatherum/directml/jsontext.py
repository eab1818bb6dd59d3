"""Parse JSON as DxDispatch does: with comments and trailing commas, without repeated members."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

# Far larger than any model of operators; a file that is read into memory needs a limit.
LONGEST: Final = 64 << 20

# Tokens match one after the other without backtracking, so no character is read more than a few
# times. A token without an end consumes the rest of the text: its end is searched for once.
_TOKEN: Final = re.compile(
    r"""(?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+")"""
    r"""|(?P<blank>[ \t\r\n]++|//[^\n]*+|/\*.*?\*/)"""
    r"""|(?P<endless>(?:"|/\*).*+)"""
    r"""|(?P<other>[^"/,\[\]{} \t\r\n]++|.)""",
    re.DOTALL,
)
_VISIBLE: Final = re.compile(r"[^\r\n]")


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text, or raise ValueError with one message.

    ``//`` and ``/* */`` comments and a comma after the last member of an object or list are
    allowed. A member given twice, NaN and Infinity are not.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"not valid JSON: byte {error.start} is not UTF-8") from None
    try:
        return json.loads(
            _without_extras(text),
            object_pairs_hook=_unique,
            parse_constant=_reject_constant,
            parse_int=_integer,
        )
    except json.JSONDecodeError as error:
        raise ValueError(
            f"not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except RecursionError:
        raise ValueError("not valid JSON: nested too deeply") from None


def _without_extras(text: str) -> str:
    """Replace comments and trailing commas with blanks, so that other characters do not move."""
    pieces: list[str] = []
    last_token = ""  # the last token that is not blank
    comma_position = -1  # position in pieces of a comma right before the present token
    for token in _TOKEN.finditer(text):
        piece = token.group()
        if token.lastgroup == "blank":
            pieces.append(_VISIBLE.sub(" ", piece))
            continue
        if comma_position >= 0 and piece in ("}", "]"):
            pieces[comma_position] = " "
        comma_position = (
            len(pieces) if piece == "," and last_token not in ("", ",", "[", "{") else -1
        )
        last_token = piece
        pieces.append(piece)
    return "".join(pieces)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise ValueError(f"ambiguous JSON: the member {name!r} is given twice")
        members[name] = value
    return members


def _integer(digits: str) -> int:
    if len(digits) > 100:  # int() also has a limit, but its message is about Python
        raise ValueError(f"unsupported JSON: an integer of {len(digits)} digits")
    return int(digits)


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"not valid JSON: {name} is not a JSON number")
