"""Spark's data source ``lftj``: heads that are kept somewhere as DataFrames, and changes into a workspace."""
