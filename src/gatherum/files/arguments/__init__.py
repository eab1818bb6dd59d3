"""The operands of a call on files, and the outputs of its result."""
