"""What each idea of the kernel is worth: the same counts with one of them taken away.

    python -m bench.ablation [--quick]

writes ``ablation.md`` into ``bench/results/`` (``--quick``: only prints it).  Key orders are
pinned, so that nothing but the named idea changes; each answer is checked; one thread; medians.

Ideas are switched off from outside, by replacing the constant or function that
decides on them: the engine itself has no switches for them.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import lftj
from bench import datasets
from bench.report.markdown import number, table
from bench.report.page import is_quick, show

RUNS = 5
_SYMMETRIC = "edge(a, b), edge(b, c), edge(a, c)"


@dataclass(frozen=True)
class _Question:
    title: str
    table: str
    rule: str
    order: str
    expected: int


QUESTIONS = [
    _Question("triangles, RMAT 17/8", "rmat-17", f"t(a, b, c) <- {_SYMMETRIC}.", "abc", 8_797_688),
    _Question("triangles, email-enron", "email-enron", f"t(a, b, c) <- {_SYMMETRIC}.", "abc", 727_044),
    _Question(
        "4-cliques, email-enron",
        "email-enron",
        f"k(a, b, c, d) <- {_SYMMETRIC}, edge(a, d), edge(b, d), edge(c, d).",
        "abcd",
        2_341_639,
    ),
]
QUICK = [_Question("triangles, RMAT 10/8", "rmat-10", f"t(a, b, c) <- {_SYMMETRIC}.", "abc", 24_305)]


@contextmanager
def without(idea: str) -> Iterator[None]:
    """The engine with one idea switched off; "" for none."""
    from lftj.evaluation import plans
    from lftj.search import marks
    from lftj.search.machine import plan
    from lftj.search.queries import plan as queries
    from lftj.storage import trie

    def no_stages(self: Any, depth: int, node: int, nodes: Any) -> None:
        pass

    compile_plan = queries.compile_plan

    def unshared(problem: Any, order: Any, write: bool) -> Any:
        return compile_plan(problem, order, write, share=False)

    with ExitStack() as stack:
        if idea == "marks":
            stack.enter_context(mock.patch.object(marks, "MARKS_MAX_BITS", 0))
        elif idea == "stages and marks":
            stack.enter_context(mock.patch.object(plan.Compilation, "write_stages", no_stages))
        elif idea == "rank tables":
            stack.enter_context(mock.patch.object(trie, "RANKS_MAX_SPREAD", 0))
            stack.enter_context(mock.patch.object(trie, "RANKS_SMALL", 0))
        elif idea == "shared iterators":
            stack.enter_context(mock.patch.object(plans, "compile_plan", unshared))
        elif idea:
            raise ValueError(f"no idea is called {idea!r}")
        yield


IDEAS = ["", "marks", "stages and marks", "rank tables", "shared iterators"]


def measure(question: _Question, idea: str) -> tuple[float, int]:
    """Median seconds and operations of one count."""
    database = lftj.Database()
    database.load("edge", datasets.table(question.table))
    order = list(question.order)
    seconds = []
    with without(idea):
        for _ in range(RUNS + 1):
            started = time.perf_counter()
            found = database.count(question.rule, threads=1, order=order)
            seconds.append(time.perf_counter() - started)
            if found != question.expected:
                raise AssertionError(f"{question.title} without {idea}: {found}, not {question.expected}")
        rule = "n[] = count() <-" + question.rule.partition("<-")[2]
        operations = database.explain(rule, analyze=True, order=order).bodies[0].operations
    return statistics.median(seconds[1:]), operations


def report(questions: list[_Question]) -> str:
    """The Markdown table of all questions and ideas."""
    rows = []
    for question in questions:
        whole: float | None = None
        for idea in IDEAS:
            seconds, operations = measure(question, idea)
            whole = seconds if whole is None else whole
            rows.append(
                [
                    question.title,
                    f"without {idea}" if idea else "all ideas",
                    number(seconds),
                    f"{seconds / whole:.2f}",
                    f"{operations:,}",
                ]
            )
            print(f"{question.title}: {rows[-1][1]} {rows[-1][2]} s", file=sys.stderr)
    return table(["workload", "kernel", "seconds", "times", "operations"], rows)


def main() -> None:
    heading = f"# What each idea of the kernel is worth\n\nOne thread, median of {RUNS} runs.\n\n"
    show(report(QUICK if is_quick() else QUESTIONS), "ablation.md", heading)


if __name__ == "__main__":
    main()
