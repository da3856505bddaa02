"""The pictures of the documentation, drawn from what the engine does, by `python -m bench.pictures`."""
