"""Outputs that appear complete or not at all, and runs that resume.

build.py makes an output, journal.py notes finished parts, whole.py writes small outputs. It
imports files.row_access and below. Start with build.py.
"""
