"""Maintenance, measured as one grid: views x change sizes x kinds of change x strategies and peers."""
