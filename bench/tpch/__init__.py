"""TPC-H: the 22 queries as rules beside DuckDB, asked once and kept up to date."""
