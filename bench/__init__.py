"""Benchmarks: ``python -m bench`` measures, ``python -m bench.demo`` shows.

The rules that every figure here follows:

1. An answer is checked before anything is timed; a wrong one is never timed.
2. Each (workload, engine) pair runs in a fresh process of its own, so that its
   peak memory is its own.
3. Loading, the first run (which builds indexes and loads compiled code) and
   the runs after it are reported apart.
4. A claim stands beside a peer measured in the same run, on the same machine,
   with the same number of threads.
5. What was not measured says why: not installed, no such query, out of time.
"""
