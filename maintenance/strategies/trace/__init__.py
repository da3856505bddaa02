"""ILFTJ: sensitivity records, the change oracle, regions evaluated again (ENGINE.md sections 4 and 5)."""
