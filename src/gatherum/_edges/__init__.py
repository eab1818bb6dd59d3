"""Edges of graphs: lists, sparse matrices, and the composition of `aggregate` from operators."""
