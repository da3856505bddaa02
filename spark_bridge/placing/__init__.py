"""Which row goes to which cell: shares, grids, samples, hashes, packets."""
