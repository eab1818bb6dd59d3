"""Derivatives of calls on tensors, and their batching rules.

This package imports torch.namespace, torch.tracing and below. Start with gradients.py.
"""
