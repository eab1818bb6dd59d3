"""Outputs that appear complete or not at all, and runs that resume.

sinks.py receives rows and commits them, build.py makes an output, journal.py notes finished parts,
whole.py writes small outputs. This package imports files.row_access and below. Start with sinks.py.
"""
