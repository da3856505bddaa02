"""`stages`: recursive components, kept by forward delta rules, a rank and two counters per fact."""
