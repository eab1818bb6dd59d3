"""Derivatives and batching rules of calls on tensors.

This package imports only torch.namespace, torch.tracing and the packages below them. Start with
gradients.py.
"""
