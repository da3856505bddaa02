"""Parameters and prepared rules: every value against the rule with the literal, plans that are kept."""

from __future__ import annotations

import datetime
import gc
import weakref
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lftj
from lftj import errors
from lftj.evaluation import plans
from lftj.language.parameters import parameters_of
from lftj.language.parser import parse
from lftj.search.queries.plan import Plan
from maintenance import Workspace

DAY = datetime.date(2026, 1, 31)
MOMENT = datetime.datetime(2026, 1, 31, 10, 30)


@pytest.fixture
def db() -> lftj.Database:
    database = lftj.Database()
    database.load(
        "t",
        pa.table(
            {
                "k": pa.array([1, 2, 3, 4], pa.int32()),
                "f": [1.5, 2.5, -1.0, 4.0],
                "s": ["a", "b", "c", "a"],
                "d": pa.array([Decimal("1.50"), Decimal("2.25"), Decimal("3.00"), Decimal("0.10")]),
                "day": [DAY, DAY, datetime.date(2026, 2, 1), datetime.date(2025, 1, 1)],
                "at": pa.array([MOMENT, MOMENT, MOMENT, datetime.datetime(2025, 1, 1)], pa.timestamp("us")),
                "y": [True, False, True, True],
                "b": [b"x", b"y", b"x", b""],
            }
        ),
    )
    database.load("edge", [(1, 2), (1, 3), (2, 3), (3, 4)], columns=["src", "dst"])
    return database


def rows(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


T = "t(k, f, s, d, day, at, y, b)"
BODIES = {
    "an atom": ("t(k, f, $p, d, day, at, y, b), t(k, _, s, _, _, _, _, _)", ["a", "c", "nothing"]),
    "equality": (T + ", k = $p", [1, 4, 9, Decimal("2.5"), np.int32(3)]),
    "a bound": (T + ", k < $p", [1, 3, 2.5, Decimal("2.5"), -(2**70)]),
    "a bound on floats": (T + ", f >= $p", [2, 2.5, Decimal("2.5"), np.float32(-1.0)]),
    "a bound on strings": (T + ", s > $p", ["a", "aa", "", pa.scalar("b")]),
    "inequality": (T + ", s != $p", ["a", "none"]),
    "decimals": (T + ", d <= $p", [Decimal("1.5"), Decimal("2.251"), 3]),
    "dates": (T + ", day = $p", [DAY, datetime.date(1999, 1, 1)]),
    "timestamps": (T + ", at < $p", [MOMENT, MOMENT + datetime.timedelta(microseconds=1)]),
    "booleans": ("t(k, f, s, d, day, at, $p, b)", [True, False]),
    "bytes": (T + ", b = $p", [b"x", b"none"]),
    "a bound at the ends": (T + ", k <= $p", [2, 2**63 - 1, -(2**63), 1]),
    "an equality at the ends": (T + ", k = $p, k != 2", [1, 2, 2**63 - 1]),
    "beside a literal": (T + ", edge($p, k), edge(1, k)", [1, 2, 99, 3]),
    "on both sides": ("t($p, f, s, d, day, at, y, b), t(k, f, _, _, _, _, _, _), k <= $p", [1, 9, 4]),
    "an offset": (T + ", edge(k, m), m <= k + $p", [0, 1, 5]),
    "arithmetic": (T + ", v = f * $p, v > 2", [1, 2.0, Decimal("1.5")]),
    "a sign": (T + ", f > -$p", [1, 2.0]),
    "twice": ("t(k, f, s, d, day, at, y, b), edge(k, $p), !edge($p, k)", [2, 3, 4]),
    "a negated atom": (T + ", !edge(k, $p)", [2, 3, 99, Decimal("2.5")]),
    "alternatives": (T + ", (edge(k, $p) ; k = $p)", [2, 3, 4]),
}


def spelled(value: Any) -> str:
    """The literal that a rule would have."""
    value = value.as_py() if isinstance(value, pa.Scalar) else value
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bytes):
        return f'x"{value.hex()}"'
    if isinstance(value, datetime.date):
        return value.isoformat()
    return f"{value!r}e0" if isinstance(value, float) else str(value)


@pytest.mark.parametrize("case", BODIES)
def test_a_parameter_is_a_literal_that_comes_later(db: lftj.Database, case: str) -> None:
    body, values = BODIES[case]
    prepared = db.prepare(f"h(k, s) <- {body}.")
    assert prepared.parameters == ("p",)
    for value in [*values, *reversed(values)]:  # plans of earlier values serve later ones
        expected = db.query(f"h(k, s) <- {body.replace('$p', spelled(value))}.")
        assert rows(prepared(p=value)) == rows(expected), value
        assert prepared.count({"p": value}) == expected.num_rows
        assert rows(db.query(f"h(k, s) <- {body}.", params={"p": value})) == rows(expected)
        streamed = pa.Table.from_batches(list(prepared.stream({"p": value}, batch_rows=1)))
        assert rows(streamed) == rows(expected)


REFUSED: dict[str, tuple[Callable[[lftj.Database], object], str]] = {
    "missing": (
        lambda db: db.query("h(b) <- edge($k, b)."),
        r"parameter \$k has no value: give it as params=\{'k': \.\.\.\}; the rule has \$k$",
    ),
    "one of two": (
        lambda db: db.query("h(b) <- edge($k, b), b > $j.", params={"k": 1}),
        r"parameter \$j has no value: .*; the rule has \$k, \$j$",
    ),
    "by place": (
        lambda db: db.query("h(b) <- edge($k, b).", params=[1]),  # type: ignore[arg-type]
        r"params= takes a mapping such as \{'k': \.\.\.\}, not a list: the rule has \$k$",
    ),
    "unknown": (lambda db: db.query("h(b) <- edge($k, b).", params={"k": 1, "j": 2}), r"'j', .* it has \$k"),
    "none": (lambda db: db.query("h(b) <- edge(1, b).", params={"j": 2}), "it has none"),
    "NULL": (lambda db: db.prepare("h(b) <- edge($k, b).")(k=None), r"\$k is None"),
    "NaN": (lambda db: db.prepare("h(b) <- edge(b, _), b > $k.")(k=float("nan")), r"\$k is NaN"),
    "a list": (lambda db: db.prepare("h(b) <- edge($k, b).")(k=[1]), r"\$k is a list"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_parameters_are_named(db: lftj.Database, case: str) -> None:
    call, message = REFUSED[case]
    with pytest.raises(errors.ParameterError, match=message):
        call(db)


def test_a_value_of_another_type_is_checked_anew(db: lftj.Database) -> None:
    prepared = db.prepare("h(b) <- edge(a, b), a = $k.")
    assert prepared.count({"k": 1}) == 2
    with pytest.raises(errors.TypeClashError):
        prepared(k="x")
    assert prepared.count({"k": Decimal("1.0")}) == 2


def test_heads_and_installed_rules_have_no_parameters() -> None:
    with pytest.raises(errors.RuleSyntaxError):
        parse("h($k) <- edge($k, b).")
    ws = Workspace()
    ws.load("edge", [(1, 2)], columns=["a", "b"])
    with pytest.raises(errors.ParameterError, match=r"\$k"):
        ws.install("h(b) <- edge($k, b).")
    assert not ws.heads


def test_parameters_are_found_wherever_constants_stand() -> None:
    program = parse("h(a) <- e(a, $x), !f(a, $y), (g(a) ; a < 2 * $z + 1), v[$w] = a.")
    assert parameters_of(program) == ("x", "y", "z", "w")


# -- plans are kept ---------------------------------------------------------------------------


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The problems that an order was chosen for."""
    found: list[object] = []
    choose = plans.choose_order

    def counting(problem: Any, *arguments: Any, **options: Any) -> Any:
        found.append(problem)
        return choose(problem, *arguments, **options)

    monkeypatch.setattr(plans, "choose_order", counting)
    return found


def workspace(n_rows: int) -> Workspace:
    ws = Workspace()
    ws.load("edge", {"a": np.arange(n_rows) // 4, "b": np.arange(n_rows) % 61})
    return ws


def test_one_plan_serves_all_parameters_and_commits(planned: list[object]) -> None:
    ws = workspace(3_000)
    prepared = ws.prepare("out(c) <- edge($k, b), edge(b, c).")
    for key in range(5):
        expected = rows(ws.query(f"out(c) <- edge({key}, b), edge(b, c)."))
        before = len(planned)
        assert rows(prepared(k=key)) == expected
        assert len(planned) == before + (key == 0)
        with ws.transaction() as tx:
            tx.insert("edge", [(key, 700 + key)])
            tx.erase("edge", [(key, 2 * key)])


def test_a_count_that_has_to_list_keeps_its_order(planned: list[object]) -> None:
    """Where rows have to be told apart they are listed, in the order that was chosen for counting them."""
    ws, n_rows = workspace(3_000), []
    for rule in ("out(a, c) <- edge(a, b), edge(b, c).", "out(a) <- edge(a, b), edge(b, c), edge(c, _)."):
        n_rows.append(ws.count(rule))
        assert len(planned) == 1
        assert ws.query(rule).num_rows == n_rows[-1]
        planned.clear()
    table = ws["edge"].to_pandas()
    two = table.merge(table, left_on="b", right_on="a")
    assert n_rows[0] == len(two[["a_x", "b_y"]].drop_duplicates())


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many bodies were lowered, and how many plans bound to tables."""
    done: Counter[str] = Counter()
    lower, bind = plans.lower, Plan.bind

    def counting_lower(*arguments: Any, **options: Any) -> Any:
        done["lowered"] += 1
        return lower(*arguments, **options)

    def counting_bind(*arguments: Any) -> Any:
        done["bound"] += 1
        return bind(*arguments)

    monkeypatch.setattr(plans, "lower", counting_lower)
    monkeypatch.setattr(Plan, "bind", counting_bind)
    return done


CODED = {
    "a term": "out(b) <- edge($k, b).",
    "a join": "out(c) <- edge($k, b), edge(b, c), !edge($k, c).",
    "a comparison": "out(a, b) <- edge(a, b), a = $k, b != $k.",
    "bounds": "out(a, b) <- edge(a, b), a >= $k, a < $j.",
    "a count": "n[] = count() <- edge($k, b).",
}


@pytest.mark.parametrize("case", CODED)
def test_other_values_need_other_codes_and_nothing_else(work: Counter[str], case: str) -> None:
    ws = workspace(3_000)
    prepared = ws.prepare(CODED[case])

    def look(key: int) -> None:
        values = {"k": key, "j": key + 2}
        text = CODED[case]
        for name, value in values.items():
            text = text.replace(f"${name}", str(value))
        expected = rows(ws.query(text))
        params = {name: values[name] for name in prepared.parameters}
        work.clear()
        assert rows(prepared(params)) == expected
        assert prepared.count(params) == expected.total()

    look(5)
    assert work["lowered"] and work["bound"]
    for key in (6, 7, 700, 5):
        look(key)
        assert not work
    with ws.transaction() as tx:
        tx.insert("edge", [(6, 800)])
    look(6)
    assert work["bound"] and not work["lowered"]


def test_a_body_that_needs_a_value_otherwise_is_lowered_anew(work: Counter[str]) -> None:
    ws = workspace(3_000)
    prepared = ws.prepare("out(b) <- edge($k, a), edge(a, b), b < a * $k.")
    for key in (1, 2, 3):
        expected = rows(ws.query(f"out(b) <- edge({key}, a), edge(a, b), b < a * {key}."))
        work.clear()
        assert rows(prepared(k=key)) == expected
        assert work["lowered"] == 1


def test_parameters_of_one_value_are_one_variable(db: lftj.Database) -> None:
    prepared = db.prepare("out(b) <- edge($j, b), edge($k, b).")
    for j, k in [(1, 2), (1, 1), (2, 1), (2, 2), (1, 2), (9, 1), (9, 9), (1, 2)]:
        expected = db.query(f"out(b) <- edge({j}, b), edge({k}, b).")
        assert rows(prepared(j=j, k=k)) == rows(expected)
        assert prepared.count({"j": j, "k": k}) == expected.num_rows


def test_text_that_comes_later_is_found() -> None:
    ws = Workspace()
    ws.load("name", [("a", 1), ("b", 2), ("b", 3)], columns=["s", "n"])
    texts = {"a parameter": "out(n) <- name($s, n).", "a literal": 'out(n) <- name("new", n), n != $s.'}
    asked = {"a parameter": ("b", "new", "a", "new"), "a literal": (7, 4, 3)}
    prepared = {case: ws.prepare(text) for case, text in texts.items()}
    for committed in (False, True):
        for case, text in texts.items():
            for value in asked[case]:
                expected = ws.query(text.replace("$s", spelled(value)))
                assert rows(prepared[case](s=value)) == rows(expected)
                assert prepared[case].count({"s": value}) == expected.num_rows
        if not committed:
            with ws.transaction() as tx:
                tx.insert("name", [("new", 4), ("new", 5)])
    assert rows(prepared["a parameter"](s="new")) == Counter({(4,): 1, (5,): 1})


def test_a_key_that_came_or_went_is_found_by_a_plan_bound_for_another() -> None:
    """A patch leaves the root out until such a key is sought."""
    ws = workspace(3_000)
    prepared = ws.prepare("out(b) <- edge($k, b).")
    gone = [(9, int(b)) for b in np.arange(36, 40) % 61]
    with ws.transaction() as tx:
        tx.insert("edge", [(5_000, 1), (5_000, 2)])
        tx.erase("edge", gone)
    assert rows(prepared(k=7)).total() == 4  # keys that neither came nor went
    assert rows(prepared(k=5_000)) == Counter({(1,): 1, (2,): 1})
    assert rows(prepared(k=9)) == Counter()
    assert prepared.count({"k": 8}) == 4 and prepared.count({"k": 5_000}) == 2
    assert prepared.count({"k": 9}) == 0


def test_every_run_warns_of_a_product_once(db: lftj.Database) -> None:
    prepared = db.prepare("out(a, b) <- edge(a, $k), edge(b, $k).")
    for key in (2, 3, 3):
        with pytest.warns(errors.CartesianProductWarning) as caught:
            assert prepared(k=key).num_rows == (1 if key == 2 else 4)
        assert len(caught) == 1


def test_a_relation_that_has_grown_far_has_the_order_chosen_anew(planned: list[object]) -> None:
    ws = workspace(3_000)
    prepared = ws.prepare("out(c) <- edge($k, b), edge(b, c).")
    prepared(k=1)
    with ws.transaction() as tx:
        tx.insert("edge", {"a": np.arange(5_000), "b": np.arange(5_000) + 100})
    text = str(prepared.explain({"k": 1}))
    assert "was chosen when there were 3,000 rows of edge; a relation 4 times as large" in text
    assert len(planned) == 1
    with ws.transaction() as tx:
        tx.insert("edge", {"a": np.arange(9_000), "b": np.arange(9_000) + 9_000})
    text = str(prepared.explain({"k": 1}))
    assert "was chosen when there were 3,000 rows of edge, and is chosen anew" in text
    assert len(planned) == 2
    assert "was chosen" not in str(prepared.explain({"k": 1}))


def test_a_reloaded_relation_of_other_types_is_checked_anew(db: lftj.Database) -> None:
    prepared = db.prepare("out(b) <- edge($k, b).")
    assert prepared.count({"k": 1}) == 2
    db.load("edge", [("x", 2.5)], columns=["src", "dst"])
    assert prepared(k="x").to_pylist() == [{"b": 2.5}]
    with pytest.raises(errors.TypeClashError):
        prepared(k=1)


def test_plans_hold_no_relation_that_was_replaced(db: lftj.Database) -> None:
    prepared = db.prepare("out(b) <- edge($k, b).")
    assert prepared.count({"k": 1}) == db.count("out(b) <- edge(1, b).") == 2
    first = weakref.ref(db["edge"].tuples), weakref.ref(db["edge"].tuples.view(((0, 1), ())).base)
    db.load("edge", [(1, 2)], columns=["src", "dst"])
    gc.collect()
    assert [reference() for reference in first] == [None, None]
    assert prepared.count({"k": 1}) == 1


def test_threads_with_other_parameters_get_their_own_rows() -> None:
    """One plan serves them at once: neither takes the constants of the other."""
    ws = workspace(3_000)
    prepared = ws.prepare("out(b) <- edge($k, b).")
    expected = {key: rows(prepared(k=key)) for key in range(0, 750, 50)}

    def look(key: int) -> bool:
        return all(rows(prepared(k=key)) == expected[key] for _ in range(40))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(look, expected))
