"""Relations in memory: sorted rows, tries, versions, support counts (ENGINE.md section 2)."""
