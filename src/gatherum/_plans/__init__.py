"""Plans: calls that are checked and lowered to a program of the core."""
