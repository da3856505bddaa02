"""What is given where SQL is taken, as DuckDB's SQL: texts of any dialect, frames, values of parameters."""
