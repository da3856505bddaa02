"""Maintained aggregates: groups, and the values that follow their changes.

Specification: docs/design/engine.md section 6.
"""
