"""The search machine: plans as records, cursors, nodes, stages, rows."""
