"""``python -m bench.tpch``: the 22 queries of TPC-H as SQL beside DuckDB, asked once and kept up to date.

    python -m bench.tpch                           all at scale 0.1; tpch.md into bench/results/
    python -m bench.tpch --quick                   scale 0.01, few turns and single orders
    python -m bench.tpch --only 1,6 --scale 1      these queries, at another scale
    python -m bench.tpch --measure kept --strategies auto,delta,views,trace

``once``: answers of a database, warm and the first of one just loaded.  ``kept``: refreshes of 10 orders and
their items, by each strategy, in turns with DuckDB, which computes anew, and in a row; the answers are kept,
and other heads for what these need.  ``unread``: memory of what is loaded, and commits that no rule reads.
``workspace``: all queries in one, by the first of the strategies.  ``single``: one order with its items a
transaction, queries 3, 5 and 10, by the first too.  What is measured is the SQL as published
(views have all rows, without LIMIT); rules written by hand stand beside it.

A selection writes into bench/results/selection/ or, with ``--quick``, bench/results/quick/.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.report.machine import as_markdown, describe
from bench.report.options import results_folder
from bench.tpch import measures
from bench.tpch.queries import QUERIES
from bench.tpch.single_orders import single_orders
from bench.tpch.tables import tables
from maintenance.heads.strategies import STRATEGIES

MEASURES = ("once", "kept", "unread", "workspace", "single")
SCALE = 0.1


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.tpch", description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=float, help=f"of the tables (default {SCALE})")
    parser.add_argument("--only", metavar="1,6", help="queries")
    parser.add_argument(
        "--measure", default=",".join(MEASURES), metavar="A,B", help=f"of {', '.join(MEASURES)}"
    )
    parser.add_argument("--strategies", default="auto", metavar="A,B", help=f"of {', '.join(STRATEGIES)}")
    parser.add_argument("--quick", action="store_true", help="scale 0.01, few turns")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where results go; in bench/results")
    chosen = parser.parse_args(arguments)
    whole = parser.parse_args([])
    for parsed in (chosen, whole):
        parsed.scale = parsed.scale or (0.01 if chosen.quick else SCALE)
    names = ("scale", "only", "measure", "strategies")
    changed = {name: getattr(chosen, name) for name in names if getattr(chosen, name) != getattr(whole, name)}
    chosen.words = "; ".join(f"{name} {value}" for name, value in changed.items())
    for name, known in (
        ("only", [str(number) for number in QUERIES]),
        ("measure", MEASURES),
        ("strategies", tuple(STRATEGIES)),
    ):
        given = getattr(chosen, name)
        parts = [] if given is None else given.split(",")
        for part in parts:
            if part not in known:
                parser.error(f"--{name}: {part!r} is none of {', '.join(known)}")
        setattr(chosen, name, parts)
    chosen.queries = [QUERIES[int(number)] for number in chosen.only] or list(QUERIES.values())
    return chosen


def _say(what: str) -> None:
    print(what, file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command.  Raises AssertionError where an answer is not DuckDB's."""
    chosen = _arguments(arguments)
    title = "# TPC-H by SQL, beside DuckDB" + (f" ({chosen.words})" if chosen.words else "")
    parts = [title, as_markdown(describe())]
    loaded = tables(chosen.scale)
    parts.append(
        f"Scale {chosen.scale:g}. Processor time, one thread on both sides; every answer is DuckDB's, whole"
        " numbers and decimals exactly, floats within 1e-12. Ratios are DuckDB's median over ours."
    )
    few = chosen.quick
    for name in chosen.measure:
        if name == "once":
            parts.append(measures.once(chosen.queries, loaded, 2 if few else 5, _say))
        elif name == "kept":
            parts.append(measures.kept(chosen.queries, loaded, 3 if few else 9, _say, chosen.strategies))
        elif name == "unread":
            parts.append(measures.unread(loaded, _say))
        elif name == "single":
            parts.append(single_orders(chosen.queries, loaded, _say, chosen.strategies[0], quick=few))
        else:
            parts.append(
                measures.workspace(chosen.queries, loaded, 3 if few else 9, _say, chosen.strategies[0])
            )
    text = "\n\n".join(parts)
    print(text)
    folder = results_folder(chosen, bool(chosen.words))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tpch.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
