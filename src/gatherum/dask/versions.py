"""These versions of distributed were tested with `shuffle`; with others, rows move as tasks."""

TESTED = ("2026.8.0",)
