"""Bodies without a cycle, and how Spark's own operators join them."""
