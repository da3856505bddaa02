"""Sources: what follows a server, a log or a folder, each change once (docs/sources.md)."""
