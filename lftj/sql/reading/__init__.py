"""The one room that knows DuckDB's plans: from a text to the nodes of :mod:`lftj.sql.nodes`."""
