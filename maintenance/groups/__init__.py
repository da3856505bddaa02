"""Maintained aggregates: groups, and the values that follow their changes (ENGINE.md section 6)."""
