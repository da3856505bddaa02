"""What this process has and undergoes: memory left, Ctrl-C, progress, debug checks, its sibling packages."""
