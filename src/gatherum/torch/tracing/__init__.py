"""Calls on traced tensors: fake kernels, operands of graphs, export to ONNX."""
