"""The search: one machine over tries (``machine``), and who runs it for queries and below regions.

Specification: docs/design/engine.md section 3.

The machine runs a :mod:`~lftj.search.problem` in a key order.  What it works on are
:mod:`~lftj.search.records`; it tests :mod:`~lftj.search.conditions`, and its innermost loops are
:mod:`~lftj.search.intersect`.  Threads take :mod:`~lftj.search.shares`.
"""
