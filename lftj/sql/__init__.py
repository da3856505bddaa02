"""SQL as rules: SELECTs asked once and kept, by way of DuckDB's binder."""
