"""`delta`: bodies are kept by delta rules, a search for each atom whose relation changed."""
