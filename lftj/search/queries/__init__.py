"""Queries by the search machine: plans over patched bases, batches and counts."""
