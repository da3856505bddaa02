"""oracle: scans with look-ups, against brute force and against what a search gives."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from lftj.database.database import Database
from lftj.planning import reducing
from lftj.search.problem import JoinProblem
from lftj.search.scan import scan_of
from support.bodies import BOTTOM, TOP, Row, atom_of, brute_rows, relation, rows_of
from support.rows import rows_of as table_rows
from support.sets import load_set
from support.strategies import Scenario, any_row, scenarios

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
    pytest.mark.kernel,
]

KEYS = st.sampled_from(((0, 1, 2, 3), (BOTTOM, -1, 5, TOP), (7, 1 << 40, 1 << 41, 1 << 42)))

SHAPES = (
    "f:ab",
    "f:ab g:ac",
    "f:ab g:ac h:bd",
    "f:ab g:ac h:cd",
    "f:ab g:ab",
    "f:ab g:a h:b",
    "f:abc g:ad h:bd",
    "f:ab f:bc",
)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[JoinProblem, dict[str, frozenset[Row]]]:
    """Atoms of which most have one row for each key, and their rows."""
    keys = st.sampled_from(draw(KEYS))
    atoms, rows = [], {}
    for part in draw(st.sampled_from(SHAPES)).split():
        name, variables = part.split(":")
        atoms.append(atom_of(name, len(variables), tuple(range(len(variables))), variables, label=part))
        drawn = draw(st.lists(st.tuples(*[keys] * len(variables)), max_size=10))
        if name != "f" and draw(st.integers(0, 5)):
            drawn = list({row[0]: row for row in drawn}.values())
        rows[name] = frozenset(drawn)
    names = tuple(dict.fromkeys(name for atom in atoms for name in atom.variables))
    return JoinProblem(tuple(atoms), emitted=names, counted=True), rows


@given(bodies(), st.sampled_from((1, 3, 64)))
def test_scans_give_the_assignments(body: tuple[JoinProblem, dict[str, frozenset[Row]]], room: int) -> None:
    problem, rows = body
    tables = {
        atom.relation: relation(atom.relation, len(atom.schema.columns), rows[atom.relation])
        for atom in problem.atoms
    }
    scan = scan_of(problem, tables, 0)
    event("no scan" if scan is None else f"{len(scan.lookups)} look-ups")
    if scan is None:
        return
    found: list[Row] = []
    for columns, n_rows in scan.batches(room):
        part = rows_of([columns[name] for name in problem.variables]) if n_rows else []
        assert len(part) == n_rows
        found += part
    expected = brute_rows(problem, problem.variables, rows)
    assert sorted(found) == sorted(expected)
    order = {name: at for at, name in enumerate(problem.variables)}
    scanned = [tuple(row[order[name]] for name in scan.atom.variables) for row in found]
    assert scanned == sorted(scanned), "in the order of what is scanned"


@pytest.mark.parametrize(
    ("atoms", "lookups"),
    [
        ("f:ab g:ac", ["g:ac"]),
        ("f:ab h:bc", None),  # two rows of a key
        ("f:ab g:xy", None),  # nothing known
        ("f:ab g:ax k:xy", ["g:ax", "k:xy"]),
        ("f:ab k:xy g:ax", ["g:ax", "k:xy"]),
        ("f:ab g:ab", ["g:ab"]),
    ],
)
def test_what_can_be_looked_up(atoms: str, lookups: list[str] | None) -> None:
    rows = {
        "f": {(a, b) for a in range(9) for b in range(9)},
        "g": {(a, a % 3) for a in range(9)},
        "h": {(b, c) for b in range(9) for c in range(2)},
        "k": {(x, 1) for x in range(3)},
    }
    parts = [part.split(":") for part in atoms.split()]
    made = tuple(
        atom_of(name, len(names), tuple(range(len(names))), names, label=f"{name}:{names}")
        for name, names in parts
    )
    problem = JoinProblem(made, counted=True)
    tables = {name: relation(name, 2, frozenset(rows[name])) for name, _ in parts}
    scan = scan_of(problem, tables, 10)
    assert (scan and [one.atom.label for one in scan.lookups]) == lookups
    assert scan_of(problem, tables, 100) is None


@pytest.mark.compiled
@given(scenarios(most_atoms=3))
def test_queries_by_scans_are_those_by_searches(scenario: Scenario) -> None:
    found = []
    for least in (0, 1 << 40):
        db = Database()
        for loaded in scenario.loaded:
            load_set(db, loaded.name, loaded.table())
        with (
            mock.patch.multiple(reducing, LEAST_ROWS=least, SCAN_STEP=0.0),
        ):
            try:
                found.append(any_row(set(table_rows(db.query(scenario.text)))))
            except Exception as error:
                found.append(str(error))
    assert found[0] == found[1]


@pytest.fixture
def small_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reducing, "LEAST_ROWS", 8)


STAR = "h[k, r] = sum(v) <- sale(_, p, s, v), product(p, k), store(s, r)."


def shop(n: int = 40) -> Database:
    db = Database()
    db.load("sale", [(i, i % 7, i % 5, i * i) for i in range(n)], columns=["id", "p", "s", "v"])
    db.load("product", [(p, f"kind {p % 3}") for p in range(7) if p != 3], columns=["p", "kind"])
    db.load("store", [(s, s % 2) for s in range(5)], columns=["s", "region"])
    return db


@pytest.mark.usefixtures("small_scans")
def test_explain_says_what_is_scanned() -> None:
    db = shop()
    text = str(db.explain(STAR, analyze=True, threads=2))
    assert "scan        sale(_, p, s, v): 40 rows\n  look-up     product(p, k)  by p\n" in text
    assert "one thread scans" in text and "measured: 34 rows" in text
    assert "<svg" in db.explain(STAR).svg()
    assert "scan" not in str(db.explain(STAR, order=["k", "r", "p", "s", "v"]))
    expected: dict[tuple[str, int], int] = {}
    for i in range(40):
        if i % 7 != 3:
            key = f"kind {i % 7 % 3}", i % 5 % 2
            expected[key] = expected.get(key, 0) + i * i
    assert set(table_rows(db.query(STAR))) == {(*key, value) for key, value in expected.items()}


@pytest.mark.usefixtures("small_scans")
def test_many_scans_buy_an_index_where_a_search_takes_less() -> None:
    """Seven keys of an index say how many rows each has."""
    for rule, is_bought in (
        ("n[p] = count() <- sale(_, p, _, _).", True),
        ("n[p] = sum(v) <- sale(_, p, _, v).", False),
    ):
        db = shop(400)
        for _ in range(reducing.READS):
            assert "scan  " in str(db.explain(rule))
        assert ("scan  " in str(db.explain(rule))) is not is_bought
        assert bool(db["sale"].relation.index_keys) is is_bought
        assert ("scan  " in str(db.explain(rule))) is not is_bought


@pytest.mark.parametrize(
    "rule",
    [
        "n[k] = count() <- sale(_, p, s, v), product(p, k), v > 10 * s.",
        "n[k] = avg(v) <- sale(_, p, s, v), product(p, k), v > 10 * s.",
        "h(k, count(), sum(w)) <- sale(_, p, _, v), product(p, k), w = v * 2, w != 8.",
    ],
)
def test_scans_finish_rows_as_searches_do(rule: str, request: pytest.FixtureRequest) -> None:
    searched = table_rows(shop().query(rule))
    request.getfixturevalue("small_scans")
    assert "scan  " in str(shop().explain(rule)), shop().explain(rule)
    assert sorted(table_rows(shop().query(rule))) == sorted(searched)
