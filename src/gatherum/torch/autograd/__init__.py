"""Derivatives of calls on tensors, and their batching rules."""
