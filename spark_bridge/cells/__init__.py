"""The join of one cell: search, combine, and the engines that keep them."""
