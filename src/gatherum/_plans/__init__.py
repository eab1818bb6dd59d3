"""Plans: a call, checked and lowered to a program of the core."""
