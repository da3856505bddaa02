"""The report as one HTML page that needs nothing else: its plots are in it, it has no script."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element, SubElement, tostring

from bench.grid import plots
from bench.grid.cell import Cell
from bench.grid.results import GridResults
from bench.grid.view import View
from bench.peers.engine import title
from bench.report.markdown import mebibytes, number

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid #ddd; }
th:nth-child(-n+2), td:nth-child(-n+2), td:last-child { text-align: left; }
thead th { border-bottom: 2px solid #888; vertical-align: bottom; }
tr.bad td { color: #b2182b; }
img { max-width: 100%; }
pre { background: #f5f5f5; padding: .6rem; overflow-x: auto; }
"""

_METHOD = (
    "Every engine keeps the same view under the same transactions. After each commit, outside of the time, "
    "the view's weight (its number of tuples) and a checksum of all its tuples are taken; a cell whose "
    "results differ from those of the others has no times.",
    "A rate is changes of the relations by seconds of processor time of whole commits, all threads "
    "together; one thread works. Behind it stand the quartiles of the rates of single commits. Latencies are "
    "processor time of a commit, but for the median of the time that passed.",
    "Commits of lftj and of differential dataflow begin with changes in memory and end when the view is up "
    "to date. So do those of Pathway, which takes changes in and hands them out row by row, as its "
    "connectors for Python do. DuckDB takes the changes in and asks the whole question again, into columns "
    "in memory; lftj (recompute) evaluates the rule again and finds the difference; lftj alone is its own "
    "choice (auto). What differential dataflow hands out is not netted.",
    "Warm-up commits are checked and not timed. Loading is from tables in memory to the view. Peak memory is "
    "that of the whole process; lftj, Pathway and DuckDB go through all settings of a view in one, in their "
    "order.",
    "Operations are those that lftj counts: steps of iterators, matches of records, surgeries. Instances are "
    "assignments of a recursion's rules: those that came or went, and of evaluating anew all that there are.",
)

_HEADS = (
    "setting", "kept by", "changes / s", "quartiles", "commits", "p50 ms", "p90 ms", "p99 ms", "max ms",
    "p50 ms passed", "operations / change", "instances / change", "head changes / change", "load s",
    "peak MiB", "remark",
)  # fmt: skip


def page(results: GridResults) -> str:
    """The whole page."""
    html = Element("html", lang="en")
    head = SubElement(html, "head")
    SubElement(head, "meta", charset="utf-8")
    _text(head, "title", "Maintenance of views")
    _text(head, "style", _STYLE)
    body = SubElement(html, "body")
    _text(body, "h1", "Maintenance of views")
    if not results.complete:
        _text(body, "p", f"Partial: the run ended early, {results.missing():,} cells are not measured.")
    if results.options:
        _text(body, "p", f"A selection: {results.options}.")
    _machine(body, results)
    _text(body, "h2", "Method")
    _list(body, _METHOD)
    _beside(body, results)
    for view in results.views:
        if results.of(view):
            _view(body, results, view)
    return "<!DOCTYPE html>\n" + tostring(html, encoding="unicode", method="html") + "\n"


def _text(parent: Element, tag: str, text: str) -> Element:
    found = SubElement(parent, tag)
    found.text = text
    return found


def _list(parent: Element, items: Iterable[str]) -> None:
    held = SubElement(parent, "ul")
    for item in items:
        _text(held, "li", item)


def _table(parent: Element, heads: Sequence[str], rows: Iterable[tuple[bool, Sequence[str]]]) -> None:
    """Rows with whether they tell of something broken."""
    table = SubElement(parent, "table")
    line = SubElement(SubElement(table, "thead"), "tr")
    for head in heads:
        _text(line, "th", head)
    body = SubElement(table, "tbody")
    for bad, cells in rows:
        line = SubElement(body, "tr", {"class": "bad"} if bad else {})
        for cell in cells:
            _text(line, "td", cell)


def _machine(body: Element, results: GridResults) -> None:
    found = results.machine
    _text(body, "h2", "Machine and versions")
    _list(
        body,
        [
            f"{found['processor']}, {found['cores']} cores, "
            f"{found['memory_bytes'] / 2**30:.1f} GiB of memory",
            f"{found['system']}, {found['python']}",
            ", ".join(f"{name} {version}" for name, version in found["versions"].items()),
            f"{found['date']}, load average at the start {found['load']}",
            f"{results.seconds:g} s of processor time for a cell",
        ],
    )


def beside(results: GridResults) -> list[list[str]]:
    """View, setting, rates of `auto`, strategies and differential dataflow, and `auto`'s by the last."""
    rows = []
    for view in results.views:
        for setting in view.settings:
            rates = {cell.engine: cell.rate for cell in results.of(view, setting.title)}
            ours, theirs = rates.get("lftj"), rates.get("differential")
            if ours and theirs:
                others = (rates.get(f"lftj:{name}") for name in ("trace", "delta", "stages"))
                rows.append(
                    [view.title, setting.title, *map(number, (ours, *others, theirs)), f"{ours / theirs:.2f}"]
                )
    return rows


def _beside(body: Element, results: GridResults) -> None:
    rows = beside(results)
    if rows:
        _text(body, "h2", "Beside differential dataflow")
        _text(body, "p", "Changes by the second of processor time; the ratio is of lftj's own choice (auto).")
        heads = ("view", "setting", "auto", "trace", "delta", "stages", "differential dataflow", "ratio")
        _table(body, heads, [(False, row) for row in rows])


def _view(body: Element, results: GridResults, view: View) -> None:
    _text(body, "h2", view.title)
    _text(body, "pre", view.rules.strip())
    if view.note:
        _text(body, "p", view.note)
    plot = plots.draw(results, view)
    if plot is not None:
        data = base64.b64encode(plot.encode()).decode()
        SubElement(body, "img", src=f"data:image/svg+xml;base64,{data}", alt=f"plots of {view.title}")
    rows = [
        (cell.status in ("differs", "failed"), _row(cell))
        for setting in view.settings
        for cell in results.of(view, setting.title)
        if cell.status != "no view"
    ]
    _table(body, _HEADS, rows)


def _row(cell: Cell) -> list[str]:
    ok = cell.status == "ok"
    remark = cell.status + (f": {cell.detail}" if cell.detail else "")
    return [
        cell.setting,
        title(cell.engine),
        number(cell.rate),
        " - ".join(number(bound) for bound in cell.rates or ()),
        f"{len(cell.processor):,}" if ok else "",
        *(number(cell.percentile(share)) for share in (50, 90, 99, 100)),
        number(1e3 * sorted(cell.seconds)[len(cell.seconds) // 2]) if ok else "",
        number(cell.per_change(cell.operations)),
        number(cell.per_change(cell.instances)),
        number(cell.per_change(cell.head_changes)),
        number(cell.load_processor) if ok else "",
        mebibytes(cell.peak_bytes),
        "" if ok else remark,
    ]
