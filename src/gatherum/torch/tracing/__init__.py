"""Calls on traced tensors: fake kernels, operands of graphs, export to ONNX.

This package imports torch.library and below. Start with fakes.py.
"""
