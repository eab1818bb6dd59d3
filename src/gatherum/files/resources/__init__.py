"""Memory, disk space, system calls and counts of a call on files.

This package imports _plans and below. Start with resources.py.
"""
