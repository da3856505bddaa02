"""Relations in memory: sorted rows, tries, versions, support counts (docs/design/engine.md section 2)."""
