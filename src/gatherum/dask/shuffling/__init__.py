"""Rows that are exchanged between chunks and workers."""
