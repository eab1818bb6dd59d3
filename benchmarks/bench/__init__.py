"""The machine at hand: our times against its own limits and against the peers installed on it."""
