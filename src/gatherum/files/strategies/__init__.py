"""How a call on files runs: in blocks of its rows, or in passes over a table."""
