"""The strategies of a call on files: blocks of its rows, or passes over a table."""
