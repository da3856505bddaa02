"""``python -m bench.spark``: the workloads in Spark alone, into bench/results/spark/.

    python -m bench.spark                         joins, maintained joins, streams: about 40 minutes
    python -m bench.spark --quick                 small generated data, one of every kind
    python -m bench.spark --only batches          workloads whose name has this in it
    python -m bench.spark --list                  the workloads, and nothing is run

``python -m bench --only spark`` runs the same, into bench/results/selection/.  Other options and the exit
status are those of ``python -m bench``.
"""

from __future__ import annotations

import sys

from bench.__main__ import main

if __name__ == "__main__":
    sys.exit(main(in_spark=True))
