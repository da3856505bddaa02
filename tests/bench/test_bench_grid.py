"""The grid of maintenance: changes, digests, cells, sides that keep views, the page.  No time is asserted."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import chain, permutations
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pytest

from bench import maintenance_report, workloads
from bench.digest import Digest
from bench.graphs import rmat, upward
from bench.grid import measurement, page, plots, views
from bench.grid.cell import Cell, compare
from bench.grid.changes import Kind, Rows, Stream, around_hub, drawn, in_batches
from bench.grid.keepers import Asked
from bench.grid.results import GridResults
from bench.grid.view import KEPT_BY, Setting, View
from bench.joins.patterns import RMAT_COUNTS
from bench.peers import cargo_program, differential_engine, engine
from bench.peers.cargo_program import CargoProgram
from bench.peers.differential_engine import Batches, Commit, Differential, Ended, Loaded
from bench.peers.pathway_engine import Pathway

needs_differential = pytest.mark.skipif(
    not differential_engine.PROGRAM.is_built(), reason="cargo has not built bench/peers/differential"
)

Held = dict[str, set[tuple[int, ...]]]

MACHINE = {
    "processor": "P", "cores": 2, "memory_bytes": 2**30, "system": "S", "python": "CPython 3",
    "versions": {"lftj": "0"}, "date": "today", "load": 0.0,
}  # fmt: skip


def edges(scale: int = 8) -> Rows:
    return np.column_stack(rmat(scale))


def held(stream: Stream) -> Held:
    return {name: set(map(tuple, rows.tolist())) for name, rows in stream.tables.items()}


def states(stream: Stream) -> Iterator[Held]:
    """What relations hold after each transaction; every change has to be one, behind those before it."""
    now = held(stream)
    for transaction in stream.transactions:
        for name, changes in transaction.items():
            for *row, weight in changes.tolist():
                assert (tuple(row) in now[name]) == (weight < 0)
                (now[name].discard if weight < 0 else now[name].add)(tuple(row))
        yield now


# -- changes -----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["insert", "erase", "mixed", "window"])
@pytest.mark.parametrize("size", [1, 2, 7])
def test_laws_every_drawn_change_changes_its_relation_and_sizes_are_as_asked(kind: Kind, size: int) -> None:
    stream = drawn(edges(), kind, size, 20, "e")
    assert [len(transaction["e"]) for transaction in stream.transactions] == [size] * 20
    for now in states(stream):
        assert now["e"] <= set(map(tuple, edges().tolist()))
    weights = sum(int(transaction["e"][:, -1].sum()) for transaction in stream.transactions)
    assert weights == {"insert": 20 * size, "erase": -20 * size}.get(kind, 0)


def test_mixed_changes_bring_erased_rows_back_and_a_window_does_not() -> None:
    rows = edges()[:60]
    again = {}
    for kind in ("mixed", "window"):
        stream = drawn(rows, kind, 2, 25, "e")
        seen = Counter(tuple(row) for transaction in stream.transactions for row in transaction["e"].tolist())
        inserted = Counter(row[:-1] for row in seen.elements() if row[-1] > 0)
        again[kind] = max(inserted.values())
    assert again["mixed"] > again["window"] == 1


def test_too_few_rows_are_told_so() -> None:
    with pytest.raises(ValueError, match="30 transactions of 100 changes need more than 60 rows"):
        drawn(edges()[:60], "mixed", 100, 30, "e")


@pytest.mark.parametrize("kind", ["hub by edges", "hub by nodes"])
def test_laws_changes_around_a_hub_begin_with_it_and_end_where_they_began(kind: Kind) -> None:
    graph = views.hub_graph(50)
    stream = around_hub(graph, kind, 10, "e")
    assert len(stream.transactions) == 10
    *_, last = states(stream)
    assert last == held(stream)
    at_hub = {tuple(row) for row in graph.tolist() if 0 in row}
    assert len(at_hub) == 50
    first = {tuple(row[:-1]) for row in stream.transactions[0]["e"].tolist()}
    assert first == at_hub if kind == "hub by nodes" else len(first & at_hub) == 1


def test_changes_that_cancel_in_one_transaction_are_netted() -> None:
    changes = [(1, (1, 2)), (-1, (1, 2)), (1, (1, 2)), (-1, (3, 4))]
    assert [batch.tolist() for batch in in_batches(changes, 3)] == [[[1, 2, 1]], [[3, 4, -1]]]


@pytest.mark.parametrize("view", views.quick(), ids=lambda view: view.name)
def test_laws_every_change_of_the_quick_views_changes_its_relation(view: View) -> None:
    for setting in view.settings:
        stream = view.stream(setting)
        assert set(stream.tables) == set(view.columns)
        assert all(rows.shape[1] == len(view.columns[name]) for name, rows in stream.tables.items())
        assert sum(1 for _ in states(stream)) == len(stream.transactions) > setting.warm_up
        if setting.kind != "replay":
            for changes in chain.from_iterable(found.values() for found in stream.transactions):
                assert len(np.unique(changes[:, :-1], axis=0)) == len(changes)


def test_names_of_views_are_unique_and_found_again() -> None:
    found = [*views.grid(), *views.beside_differential(), *views.quick()]
    assert len({view.name for view in found}) == len(found)
    for view in found:
        assert views.named(view.name).title == view.title
        assert len({setting.title for setting in view.settings}) == len(view.settings)
        assert set(view.kept_by) <= set(KEPT_BY)


# -- digests and cells -------------------------------------------------------


def test_oracle_a_digest_is_the_sum_of_the_hashes_of_rows_in_any_order() -> None:
    def hashed(row: tuple[int, ...]) -> int:
        found = 0
        for value in row:
            found = (found ^ (value % 2**64)) * 0x9E3779B97F4A7C15 % 2**64
            found ^= found >> 32
        return found

    rows = [(1, -2, 3), (4, 5, 2**62), (0, 0, 0)]
    expected = sum(map(hashed, rows)) % 2**64
    for order in permutations(rows):
        digest = Digest()
        digest.add([np.array(column) for column in zip(*order, strict=True)])
        assert digest.sums == (3, expected)


def test_laws_changes_lead_a_digest_to_that_of_the_new_head() -> None:
    before = pa.table({"a": [1, 2], "x": [0.5, 1.5]})
    changes = pa.table({"a": [2, 3], "x": [1.5, -7.25], "weight": [-1, 1]})
    kept, anew, elsewhere = Digest(), Digest(), Digest()
    kept.add_table(before)
    kept.add_table(changes)
    anew.add_table(pa.table({"a": [3, 1], "x": [-7.25, 0.5]}))
    elsewhere.add_table(pa.table({"a": [3, 1], "x": [-7.25, 0.5]}), head_number=1)
    assert kept == anew
    assert kept.weight == elsewhere.weight
    assert kept.checksum != elsewhere.checksum


def cell(engine: str = "lftj", setting: str = "mixed 10", **more: object) -> Cell:
    found = Cell("triangles-rmat-8", engine, setting, "mixed", 10, "ok", load_processor=0.5)
    found.processor, found.seconds, found.changes = [0.1, 0.2, 0.4], [0.2, 0.3, 0.5], [10, 10, 10]
    found.digests = {0: (5, 1), 1: (6, 2), 2: (7, 3)}
    for attribute, value in more.items():
        setattr(found, attribute, value)
    return found


def test_a_cell_whose_results_differ_has_no_times() -> None:
    first, second, third = cell("duckdb", digests={0: (5, 1)}), cell("lftj:trace"), cell(digests={2: (7, 9)})
    compare([first, second, third])
    assert [found.status for found in (first, second, third)] == ["ok", "ok", "differs"]
    assert "from lftj:trace after 2 transactions" in third.detail
    assert (third.processor, third.rate, third.percentile(50)) == ([], None, None)


def test_figures_of_a_cell() -> None:
    found = cell(operations=60, head_changes=15)
    assert found.rate == pytest.approx(30 / 0.7)
    assert found.rates == pytest.approx((37.5, 75.0))
    assert found.percentile(50) == pytest.approx(200)
    assert found.per_change(found.operations) == 2
    assert found.per_change(found.head_changes) == 0.5
    assert found.per_change(found.instances) is None
    assert Cell.from_json(json.loads(json.dumps(found.as_json()))) == found


# -- sides -------------------------------------------------------------------


def test_oracle_sides_agree_on_the_triangles_of_a_graph_that_changes() -> None:
    view = views.named("triangles-rmat-8")
    setting = Setting("mixed", 10)
    stream = drawn(edges(), "mixed", 10, 6, "edge")
    cells = [measurement.keep(view, name, setting, stream, 9.0) for name in ("duckdb", "lftj:delta", "lftj")]
    compare(cells)
    assert [found.status for found in cells] == ["ok"] * 3
    for number, now in enumerate(states(stream), start=1):
        count = sum((a, c) in now["edge"] for a, b in now["edge"] for d, c in now["edge"] if b == d)
        assert [found.digests[number][0] for found in cells] == [count] * 3


@pytest.mark.parametrize("engine", ["lftj:recompute", "lftj:stages", "lftj"])
def test_oracle_of_a_closure_instances_are_counted_and_are_those_of_its_rules(engine: str) -> None:
    view = views.named("closure-upward-300-440")
    drawn_from = np.column_stack(upward(40, 60))
    setting = Setting("mixed", 10)
    stream = drawn(drawn_from, "mixed", 1, setting.warm_up + 2, "edge")
    found = measurement.keep(view, engine, setting, stream, 99.0)
    counts = []
    for number, now in enumerate(chain([held(stream)], states(stream))):
        edges, paths = now["edge"], closed(now["edge"])
        counts.append(len(edges) + sum(b == c for _, b in paths for c, _ in edges))
        assert found.digests[number][0] == len(paths)
    *_, first, second, third = counts
    assert len(found.processor) == 2
    assert found.instances is not None
    if engine == "lftj:recompute":
        assert found.instances == second + third
    else:  # one erasure, which may take away what comes back, and one insertion
        assert (first - second) + (third - second) <= found.instances < second + third


def closed(edges: set[tuple[int, ...]]) -> set[tuple[int, ...]]:
    paths = edges
    while (more := paths | {(a, d) for a, b in paths for c, d in edges if b == c}) != paths:
        paths = more
    return paths


def order_book_heads(rows: Held) -> dict[str, dict[int, float]]:
    """The heads by their definition, of rows that are there: time, id, broker, volume, price."""
    found: dict[str, dict[int, float]] = {head: {} for head in views.named("order-book-2000").heads}
    for side, name, best in (("bid", "bids", max), ("ask", "asks", min)):
        value, amount = found[f"{side}_value"], found[f"{side}_volume"]
        for _, _, broker, volume, price in rows[name]:
            value[broker] = value.get(broker, 0) + price * volume
            amount[broker] = amount.get(broker, 0) + volume
            found[f"best_{side}"][broker] = best(price, found[f"best_{side}"].get(broker, price))
            level = found[f"{side}_level"]
            level[price] = level.get(price, 0) + volume
        found[f"{side}_vwap"] |= {broker: value[broker] / n for broker, n in amount.items() if n}
    return found


@pytest.mark.parametrize("size", [1, 100])
def test_oracle_order_book_heads_of_all_sides_after_every_transaction(size: int) -> None:
    pytest.importorskip("duckdb")
    view = views.named("order-book-2000")
    setting = Setting("replay", size)
    stream = view.stream(setting)
    stream = Stream(stream.tables, stream.transactions[: 60 if size == 1 else 10])
    cells = [measurement.keep(view, name, setting, stream, 99.0) for name in ("duckdb", "lftj:delta", "lftj")]
    for number, now in enumerate(states(stream), start=1):
        expected = Digest()
        for head_number, values in enumerate(order_book_heads(now).values()):
            kind = np.float64 if any(isinstance(value, float) for value in values.values()) else np.int64
            columns = [np.array(list(values), np.int64), np.array(list(values.values()), kind)]
            expected.add(columns, None, head_number)
        assert [found.digests[number] for found in cells] == [expected.sums] * 3


def test_duckdb_holds_the_rows_that_there_are_after_every_transaction() -> None:
    pytest.importorskip("duckdb")
    view = views.named("order-book-2000")
    for size in (1, 100):
        stream = view.stream(Setting("replay", size))
        side = Asked(view)
        side.load(stream)
        for transaction, now in zip(stream.transactions[:20], states(stream), strict=False):
            side.commit(side.prepare([transaction]))
            for name, rows in now.items():
                found = side._connection.execute(f"SELECT * FROM {name}").fetchall()
                assert sorted(found) == sorted(rows)


def test_a_setting_ends_when_its_seconds_are_spent() -> None:
    view = views.named("degrees-rmat-8")
    found = measurement.keep(view, "lftj", Setting("mixed", 1), view.stream(Setting("mixed", 1)), 0.0)
    assert (found.status, len(found.processor)) == ("ok", 1)
    assert len(found.digests) == 2 + measurement.UNCOUNTED


def test_what_is_not_installed_or_has_no_view_has_cells_that_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    view = views.named("three-paths-rmat-8")
    monkeypatch.setattr(CargoProgram, "is_built", lambda program: True)
    assert [found.status for found in measurement.measure(view, "differential", 0.1)] == ["no view"]
    monkeypatch.setattr(CargoProgram, "is_built", lambda program: False)
    (found,) = measurement.measure(view, "differential", 0.1)
    assert (found.status, found.detail) == ("not installed", "install cargo (https://rustup.rs)")
    monkeypatch.setattr(Pathway, "version", classmethod(lambda cls: None))
    (found,) = measurement.measure(view, "pathway", 0.1)
    assert (found.status, found.detail) == ("not installed", "install lftj[pathway]")
    monkeypatch.setattr(Pathway, "version", classmethod(lambda cls: "0"))
    of_others = views.named("four-cycles-rmat-8")
    assert [found.status for found in measurement.measure(of_others, "pathway", 0.1)] == ["no view"]
    monkeypatch.setattr(cargo_program.shutil, "which", lambda name: None)
    said: list[str] = []
    engine.prepare(["duckdb", "differential", "datafrog"], said.append)
    assert said == [
        f"{name} is not built anew: cargo is not installed" for name in ("differential dataflow", "datafrog")
    ]


# -- the peers ---------------------------------------------------------------


@pytest.mark.parametrize("view", [v for v in views.quick() if v.pathway], ids=lambda view: view.name)
def test_pathway_agrees_with_lftj_after_every_transaction(view: View) -> None:
    pytest.importorskip("pathway")
    for setting in view.settings:
        stream = view.stream(setting)
        mine, theirs = (
            measurement.keep(view, name, setting, stream, 0.2) for name in ("lftj:delta", "pathway")
        )
        assert len(mine.digests.keys() & theirs.digests.keys()) > 1
        compare([mine, theirs])
        assert (theirs.status, theirs.detail) == ("ok", "")


@needs_differential
def test_oracle_differential_counts_triangles_hubs_and_groups() -> None:
    source, destination = rmat(8)
    peer = Differential(threads=1)
    peer.load({"edge": pa.table({"src": source, "dst": destination})}, {})
    assert peer.count("triangles") == RMAT_COUNTS[8]
    assert peer.count("degrees") == len(np.unique(source))
    after = {int(a): set(destination[source == a].tolist()) for a in np.unique(source)}
    assert peer.count("hubs") == sum(any(after[a] & after.get(b, set()) for b in after[a]) for a in after)
    assert peer.count("sums") == sum(any(b in after for b in after[a]) for a in after)


@needs_differential
@pytest.mark.parametrize(
    "name",
    [
        "triangles-rmat-8", "existence-random-8", "degrees-rmat-8", "two-path-sums-rmat-8",
        "closure-upward-300-440", "reach-random-8", "components-upward-600-400",
    ],
)  # fmt: skip
def test_differential_agrees_with_lftj_after_every_transaction(name: str) -> None:
    view = views.named(name)
    mine = "lftj:stages" if view.bodies else "lftj:delta"
    ours = {s.title: measurement.keep(view, mine, s, view.stream(s), 0.2) for s in view.settings}
    for theirs in measurement._of_differential(view, "differential", 0.2):
        mine = ours[theirs.setting]
        assert len(mine.digests.keys() & theirs.digests.keys()) > 1
        compare([mine, theirs])
        assert (theirs.status, theirs.detail) == ("ok", "")


@needs_differential
def test_transactions_in_flight_are_one_commit_with_the_result_of_all() -> None:
    stream = drawn(edges(), "mixed", 2, 10, "edge")
    table = stream.tables["edge"]
    peer = Differential(threads=1)
    peer.load({"edge": pa.table({"src": table[:, 0], "dst": table[:, 1]})}, {})
    transactions = [transaction["edge"] for transaction in stream.transactions]
    one, many = (list(peer.keep("triangles", Batches(transactions, n, 60.0))) for n in (1, 5))
    assert [type(event) for event in many] == [Loaded, Commit, Commit, Ended]
    for place, event in ((5, many[1]), (10, many[2])):
        assert isinstance(event, Commit)
        assert event[3:] == one[place][3:]


@needs_differential
def test_the_program_ends_with_whoever_asks() -> None:
    peer = Differential(threads=1)
    peer.load({"edge": pa.table({"src": [1], "dst": [2]})}, {})
    change = np.array([[1, 3, 1], [1, 3, -1]])
    events = peer.keep("degrees", Batches([change] * 100_000, 1, 600.0))
    before = psutil.Process().children()
    assert isinstance(next(events), Loaded)
    assert len(psutil.Process().children()) == len(before) + 1
    events.close()  # type: ignore[attr-defined]
    assert psutil.Process().children() == before


@needs_differential
def test_the_program_says_what_is_wrong_with_its_view() -> None:
    with pytest.raises(RuntimeError, match="no view is called"):
        Differential(threads=1).count("squares")


def test_differential_has_one_worker_and_no_query_among_the_joins() -> None:
    with pytest.raises(ValueError, match="one worker"):
        Differential(threads=2)
    assert "differential" in engine.ASKED_APART
    assert all("differential" not in workload.queries for workload in workloads.full())


# -- the page ----------------------------------------------------------------


class Page(HTMLParser):
    """Tags, addresses and text; every tag that has to be closed has to be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.cells: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attributes if name in ("src", "href")]
        if tag not in ("meta", "img"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "td":
            self.cells.append(data)


def results(*cells: Cell) -> GridResults:
    found = GridResults(MACHINE, "", [views.named("triangles-rmat-8")], 1.5)
    found.cells += cells
    return found


def test_the_page_is_whole_and_has_nothing_from_elsewhere() -> None:
    text = page.page(
        results(cell("differential"), cell(operations=60), cell("duckdb", status="differs", detail="<b>"))
    )
    found = Page(text)
    assert text.startswith("<!DOCTYPE html>")
    assert "script" not in found.tags
    assert "link" not in found.tags
    assert found.addresses
    assert all(address.startswith("data:image/svg+xml;base64,") for address in found.addresses)
    assert "http" not in re.sub(r"base64,[^\"]*", "", text)
    picture = base64.b64decode(found.addresses[0].partition(",")[2]).decode()
    assert "ms of processor time" in picture
    assert "differs: <b>" in found.cells
    assert "Partial: the run ended early" in text


def test_the_table_beside_differential_has_ratios_of_rates() -> None:
    found = results(cell(), cell("lftj:trace"), cell("differential", changes=[20, 20, 20]), cell("duckdb"))
    assert page.beside(found) == [["triangles, RMAT 8/8", "mixed 10", "42.9", "42.9", "", "", "85.7", "0.50"]]


def test_cells_without_figures_have_no_plot_and_say_why() -> None:
    found = results(cell(status="not installed", detail="install lftj[bench]"))
    assert plots.draw(found, found.views[0]) is None
    assert "not installed: install lftj[bench]" in Page(page.page(found)).cells


@pytest.mark.in_turns
def test_quick_report_end_to_end(tmp_path: Path) -> None:
    chosen = ["--quick", "--only", "degrees", "--engines", "duckdb,lftj", "--out", str(tmp_path)]
    assert maintenance_report.main(chosen) == 0
    written = json.loads((tmp_path / "results.json").read_text())
    assert written["complete"]
    cells = [Cell.from_json(found) for found in written["cells"]]
    assert [(found.engine, found.status) for found in cells] == [("duckdb", "ok")] * 2 + [("lftj", "ok")] * 2
    assert all(found.processor and found.peak_bytes for found in cells)
    assert "degree[a] = count()" in (tmp_path / "report.html").read_text()


def test_an_interrupted_report_keeps_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*given: object) -> Iterator[Cell]:
        yield cell()
        raise KeyboardInterrupt

    monkeypatch.setattr(maintenance_report, "measure", interrupted)
    chosen = ["--quick", "--only", "triangles-rmat-8", "--engines", "lftj", "--out", str(tmp_path)]
    assert maintenance_report.main(chosen) == 130
    assert len(json.loads((tmp_path / "results.json").read_text())["cells"]) == 1
    assert "5 cells are not measured" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "nothing"], "no view has 'nothing'"),
        (["--engines", "nobody"], "unknown engine nobody"),
        (["--quick", "--beside"], "different views"),
    ],
)
def test_a_wrong_command_says_what_to_choose(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        maintenance_report.main(words)
    assert stop.value.code == 2
    assert said in capsys.readouterr().err
