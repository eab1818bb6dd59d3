"""The rows of an array in a file: flat, in chunks, or in several files."""
