"""TPC-H: the 22 queries as SQL and as rules beside DuckDB, asked once and kept up to date."""
