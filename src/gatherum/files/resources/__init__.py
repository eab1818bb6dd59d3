"""Memory, disk space, system calls and counts of a call on files.

This package imports only _plans and the packages below it. Start with resources.py.
"""
