"""Edges of graphs: lists, sparse matrices, and the composition of `aggregate` from operators.

This package imports only _arguments and the packages below it. Start with edge_reductions.py.
"""
