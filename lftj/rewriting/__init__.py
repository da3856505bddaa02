"""Rules rewritten into others that give the same tuples with less work."""
