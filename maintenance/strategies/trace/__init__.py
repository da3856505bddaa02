"""ILFTJ: sensitivity records, the change oracle, regions evaluated again.

Specification: docs/design/engine.md sections 4 and 5.
"""
