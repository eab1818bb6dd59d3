"""The operands of a call on files, and where its result is written."""
