"""Calls on traced tensors: fake kernels, operands of graphs, export to ONNX.

This package imports only torch.library and the packages below it. Start with fakes.py.
"""
