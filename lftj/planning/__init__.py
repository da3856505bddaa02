"""From a checked body to a plan: lowering, statistics, costs, key orders."""
