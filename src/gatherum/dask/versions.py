"""The versions of distributed whose P2P machinery `shuffle` was tested with; others take tasks."""

TESTED = ("2026.8.0",)
