"""Statements one after the other over one database, for a prompt and for cells of notebooks."""
