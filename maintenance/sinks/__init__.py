"""Sinks: where the rows of heads are written to, as they change (docs/sources.md)."""
