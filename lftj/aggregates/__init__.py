"""Aggregates of all assignments: groups, exact sums, what partitions can add up."""
