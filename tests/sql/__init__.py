"""SELECTs beside DuckDB: a corpus of texts over small tables, and other engines' tests with their answers."""
