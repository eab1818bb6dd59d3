"""Derivatives of calls on tensors, and their batching rules.

This package imports only torch.namespace, torch.tracing and the packages below them. Start with
gradients.py.
"""
