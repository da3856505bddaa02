"""Sources of rows and places for results: Parquet, CSV, Arrow, JSON, pipes, URLs."""
