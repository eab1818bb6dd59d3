"""Memory, disk space, system calls and counts of a call on files."""
