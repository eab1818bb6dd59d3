"""The library of the C interface, and its programs."""

from c_calls import core, read  # noqa: F401  # fixtures
