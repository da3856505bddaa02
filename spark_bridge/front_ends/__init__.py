"""Questions in other languages, as rules: one conjunctive SELECT of SQL, and GraphFrames' motifs."""
