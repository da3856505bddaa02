"""What is asked of a join's result, filters, projections and limits, where it takes work from the join."""
