"""The two search machines over tries, ``base`` and ``regions``, and what both use.

Specification: docs/design/engine.md section 3.

Both machines run a :mod:`~lftj.search.problem` by :mod:`~lftj.search.shares`, test
:mod:`~lftj.search.conditions` and keep :mod:`~lftj.search.marks`; neither imports the other.
"""
