"""Incremental maintenance of rule heads.

To come: a ``Workspace`` that keeps the heads of installed rules up to date under
transactions of inserts and erasures, by trace maintenance (sensitivity records,
surgeries, the change oracle), by delta rules or by recomputation.  Nothing is
here yet.
"""
