"""Joins: workloads and their data."""
