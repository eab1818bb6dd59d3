"""The memory, disk space, system calls and counters of a call on files.

This package imports only _plans and the packages below it. Start with resources.py.
"""
