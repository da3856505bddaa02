"""Trace edit distance against recomputation (ILFTJ section 4)."""
