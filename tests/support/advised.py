"""Follows the advice of an error message, and checks that the advised call succeeds."""

import gatherum


def follow(call, advice, advised, names):
    """Check that a call raises an error with advice, and make the advised call."""
    names = {"gatherum": gatherum, **names}
    try:
        eval(call, names)
    except Exception as error:
        message = str(error)
    else:
        raise AssertionError(f"{call} raises nothing")
    assert advice in message, message
    return eval(advised, names)
