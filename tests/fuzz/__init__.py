"""``make fuzz``: random programs over random data, in all ways that there are, against other oracles."""
