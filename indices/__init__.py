"""Index structures over plain arrays, for the incremental engine.

:mod:`~indices.scan_tree` keeps aggregates over a monoid under updates,
:mod:`~indices.complement` walks what is missing by counts,
:mod:`~indices.interval_tree` finds the intervals that hold a key, and
:mod:`~indices.sensitivity` keeps the records of a join's iterators.  They know
arrays and nothing of rules.
"""
