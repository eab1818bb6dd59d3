"""Edges of graphs: lists, sparse matrices, and the call that `aggregate` makes of them."""
