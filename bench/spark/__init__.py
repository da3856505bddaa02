"""``python -m bench.spark``: joins and maintained joins beside Spark SQL."""
