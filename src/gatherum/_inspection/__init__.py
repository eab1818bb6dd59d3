"""Explanations of a call: facts, pseudocode and pictures."""
