"""Signatures in `help`, and hints for names of other libraries."""
