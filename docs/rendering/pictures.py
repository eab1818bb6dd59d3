"""Pictures of what goes where, drawn by `gatherum explain`."""


def render(*arguments: str) -> str:
    """Return the picture of a call, given as on the command line."""
    return ""
