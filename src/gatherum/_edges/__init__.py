"""Edges of graphs: lists, sparse matrices, and the composition of `aggregate` from operators.

This package imports _arguments and below. Start with edge_reductions.py.
"""
