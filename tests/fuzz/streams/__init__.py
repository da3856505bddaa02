"""Streams in ``make fuzz``: random programs over rows with a time, against their whole history."""
