"""Explanations of a call: its facts, pseudocode and pictures."""
