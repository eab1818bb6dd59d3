"""Write outputs that appear only when they are complete, and resume interrupted runs.

sinks.py receives rows and commits them, build.py makes an output, journal.py notes finished parts,
file_sets.py writes small outputs. This package imports only files.row_access and the packages
below it. Start with sinks.py.
"""
