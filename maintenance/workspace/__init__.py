"""Workspaces: states, transactions, commits, installing, snapshots, subscribers."""
