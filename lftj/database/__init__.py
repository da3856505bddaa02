"""The database: relations by name, and queries over them."""
