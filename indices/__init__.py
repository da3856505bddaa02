"""Index structures over plain arrays, for the incremental engine.

To come with it: scan trees (prefix sums of weights under inserts) and interval
trees (which sensitivity records hold a key).  They know arrays and nothing of
rules.  Nothing is here yet.
"""
