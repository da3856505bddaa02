"""Maintenance: workloads, their changes, and what is timed."""
