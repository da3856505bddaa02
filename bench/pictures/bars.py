"""One bar chart for each table of the performance page that says what stands beside what.

The figures are the page's own, read from its tables: what is drawn is what is written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lftj.pictures.drawing import BLUE, FAINT, ORANGE, RULE, Drawing, text_width, wrapped

PAGE = Path(__file__).resolve().parents[2] / "docs/performance.md"

WIDTH = 400.0
"""Of all that is drawn: a phone shows it whole, in a size that can be read."""

SIZE, SMALL = 12.0, 11.0
THICK, APART = 12.0, 16.0
FEW_FOLD = 20.0
"""Values that are no further apart are drawn from zero, others by their logarithms."""

_FIGURE = re.compile(r"(?:(?P<what>[^:\d]*): )?(?P<over>over )?(?P<figure>[\d,.]*\d)(?: (?P<unit>m?s)\b)?")
_IN_SECONDS = {"s": 1.0, "ms": 1e-3, None: 1.0}

Cells = Sequence[str]


class Bar(NamedTuple):
    """``row``: what was done; ``name``: by what; ``shown``: the value as the page writes it."""

    row: str
    name: str
    value: float
    shown: str


class Chart(NamedTuple):
    """``header``: how the table's first line begins; ``bars``: those of its rows."""

    header: str
    claim: str
    bars: Callable[[Sequence[Cells]], Iterator[Bar]]
    unit: str = ""


def chart_picture(chart: Chart) -> str:
    """Rows one below the other, each with its bars; ours are blue."""
    bars = list(chart.bars(table_rows(chart.header)))
    values = [bar.value for bar in bars]
    low, high = min(values), max(values)
    is_linear = high <= FEW_FOLD * low
    first = max(text_width(bar.name, SIZE) for bar in bars) + 8
    last = max(text_width(bar.shown, SIZE) for bar in bars) + 8
    room = WIDTH - first - last
    start = 0.0 if is_linear else math.floor(math.log10(low) - 0.3)

    def length(value: float) -> float:
        if is_linear:
            return room * value / high
        return room * (math.log10(value) - start) / (math.log10(high) - start)

    scale = "from zero" if is_linear else "a step to the right for each tenfold"

    def drawn(drawing: Drawing) -> tuple[float, float]:
        """Where the bars begin and end."""
        y = 0.0
        for line in wrapped(chart.claim, WIDTH, 14.0):
            drawing.text(0, y, line, size=14, bold=True)
            y += 18
        for line in wrapped(f"{chart.unit}{scale}", WIDTH, SMALL):
            drawing.text(0, y, line, size=SMALL, colour=FAINT)
            y += 14
        top, row = y, None
        for bar in bars:
            if bar.row != row:
                row = bar.row
                y += 8
                for line in wrapped(row, WIDTH, SIZE):
                    y += 15
                    drawing.text(0, y, line, size=SIZE)
                y += 6
            is_ours, long = bar.name.startswith("lftj"), length(bar.value)
            colour = BLUE if is_ours else ORANGE
            drawing.text(0, y + THICK - 2, bar.name, size=SIZE, colour=colour)
            drawing.box(first, y, long, THICK, fill=colour, line=colour, corner=1.5, thickness=0)
            drawing.text(first + long + 6, y + THICK - 2, bar.shown, size=SIZE, bold=is_ours)
            y += APART
        return top, y

    drawing = Drawing()
    if not is_linear:  # below the bars, whose place a first drawing shows
        top, bottom = drawn(Drawing())
        for power in range(int(start) + 1, math.ceil(math.log10(high))):
            x = first + length(10.0**power)
            drawing.line([(x, top), (x, bottom)], colour=RULE, thickness=0.7)
    drawn(drawing)
    return drawing.svg(f"{chart.claim}: bars of the table on this page, {scale}")


def table_rows(header: str) -> Sequence[Cells]:
    """The cells of a table's rows, as they are shown."""
    below = PAGE.read_text(encoding="utf-8").partition(f"\n{header}")[2].splitlines()[2:]
    rows = []
    for line in below:
        if not line.startswith("|"):
            break
        rows.append(
            [cell.strip().replace("`", "").replace("\\", "") for cell in line.strip("|\n").split("|")]
        )
    return rows


def _bar(row: str, name: str, cell: str) -> Bar | None:
    found = _FIGURE.match(cell)
    if found is None:
        return None
    value = float(found["figure"].replace(",", "")) * _IN_SECONDS[found["unit"]]
    unit = f" {found['unit']}" if found["unit"] else ""
    named = (found["what"] or name).removesuffix(" it")
    return Bar(row, named, value, f"{found['over'] or ''}{found['figure']}{unit}")


def _beside(timed: bool, **columns: int) -> Callable[[Sequence[Cells]], Iterator[Bar]]:
    """Of each row a bar for each named column; ``_`` in a name is a blank.

    ``timed``: rows of times, others are left out; else of plain numbers.
    """

    def bars(rows: Sequence[Cells]) -> Iterator[Bar]:
        above = ""
        for cells in rows:
            row = cells[0]
            if re.fullmatch(r"[\d,]+", row):  # of the row above, with another number of changes
                row = f"{above}, {row}"
            else:
                above = row.rpartition(", ")[0]
            found = [_bar(row, name.replace("_", " "), cells[column]) for name, column in columns.items()]
            fit = [bar for bar in found if bar is not None and bar.shown.endswith("s") == timed]
            if len(fit) > 1:
                yield from fit

    return bars


def _windows(rows: Sequence[Cells]) -> Iterator[Bar]:
    """Of a million rows: one at the end, which little follows, and a hundred anywhere, which much does."""
    for window, n_rows, commit, _, _, ours, _, theirs in rows:
        if n_rows == "1,000,000" and commit in ("1 behind", "100 anywhere"):
            row = f"{window}, {commit}"
            yield Bar(row, "lftj", float(ours.replace(",", "")), ours)
            yield Bar(row, "DuckDB", float(theirs.replace(",", "")), theirs)


def _recursions(rows: Sequence[Cells]) -> Iterator[Bar]:
    names = {"auto": "lftj", "recompute": "lftj anew", "DuckDB": "DuckDB"}
    names["differential dataflow"] = "differential"
    row, view = "", ""
    for cells in rows:
        row = cells[0] or row
        if cells[0].startswith("the same, "):
            row = f"{view}, {cells[0].removeprefix('the same, ')}"
        elif cells[0]:
            view = row.rpartition(", ")[0]
        if cells[1] in names:
            yield Bar(row, names[cells[1]], float(cells[3].replace(",", "")), cells[3])


CHARTS = {
    "bars-joins.svg": Chart(
        "| workload | lftj | DuckDB | Ladybug |",
        "Counting joins: shorter is quicker",
        _beside(True, lftj=1, DuckDB=2, Ladybug=3, GraphBLAS=4),
    ),
    "bars-sums.svg": Chart(
        "| sum by | lftj |", "Sums by group: no slower, no quicker", _beside(True, lftj=1, DuckDB=2)
    ),
    "bars-recursion.svg": Chart(
        "| workload | lftj | datafrog |",
        "Recursion from nothing: shorter is quicker",
        _beside(True, lftj=1, datafrog=2, DuckDB=3),
    ),
    "bars-changes.svg": Chart(
        "| workload | lftj | beside it |",
        "A change, and evaluating again: shorter is quicker",
        _beside(True, lftj=1, beside_it=2),
    ),
    "bars-single.svg": Chart(
        "| workload | general way |",
        "Single changes a second: longer is quicker",
        _beside(False, lftj=2, lftj_general=1, differential=4),
    ),
    "bars-windows.svg": Chart(
        "| window | rows |",
        "Windows over 1,000,000 rows: shorter is quicker",
        _windows,
        "milliseconds a commit, ",
    ),
    "bars-nexmark.svg": Chart(
        "| query | rules | SQL |",
        "Nexmark, events a second: longer is quicker",
        _beside(False, lftj_rules=1, lftj_SQL=2, DuckDB_anew=3),
    ),
    "bars-batches.svg": Chart(
        "| workload, transactions of |",
        "Changes a second, by size of transaction: longer is quicker",
        _beside(False, lftj=1, differential=3),
    ),
    "bars-kept-recursion.svg": Chart(
        "| view, transactions |",
        "Recursion kept: shorter is quicker",
        _recursions,
        "median milliseconds a commit, ",
    ),
}
