"""Recorded sessions of the documentation: what is typed, on a terminal that runs it, as moving pictures."""
