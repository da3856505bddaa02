"""differential: heads of each kind that the commit machine takes, beside a workspace that has none."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from lftj import errors
from lftj.rewriting.guard import joined, spans_of
from maintenance import Workspace
from maintenance.machine import machine
from maintenance.machine.guards import limits_of
from maintenance.machine.structures import Sizes
from maintenance.strategies.range_sums import RangeSums
from support.machine_workspace import of
from support.rows import rows_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
    pytest.mark.filterwarnings("ignore::lftj.errors.EqualRowsWarning"),
]

ARITIES = {"r": 2, "s": 2, "t": 3}
COMPUTED = (
    "x(a, c) <- r(a, b), c = a * b - 1, c > 5.",
    "y[a] = sum(p) <- r(a, b), s(b, c), p = b * c, p != 4.",
    "z[a] = count() <- r(a, b), abs(a - b) > 2, a + b < 12.",
    "w(b) <- r(a, b), c = a + b, d = c * c, d >= 16, -d <= -16. w(b) <- s(a, b), 3 * a = b.",
    "v[] = sum(p) <- t(a, b, c), p = a * b * c, p > a.",
    "f(a, c) <- t(a, b, c), x = a + b, x = c.",
)

ORDERED = (
    "x[a] = min(b) <- r(a, b).",
    "y[a] = max(c) <- r(a, b), s(b, c).",
    "z[a] = upper_quantile(b, 0.3) <- r(a, b).",
    "q[] = quantile(a, 0.5, c) <- t(a, b, c).",
    "u[b] = upper_quantile(a, 0.25, c) <- t(a, b, c).",
    "w[] = quantile(a, 1, c) <- t(a, _, c). v[a] = min(x) <- r(a, b), x = b * b - 4 * b.",
)
SEVERAL = (
    "x[a] = avg(b) <- r(a, b). y[] = avg(p) <- r(a, b), s(b, c), p = a - 2 * c.",
    "x(avg(b), count(), a, sum(c), avg(c)) <- t(a, b, c).",
    "x(a, count(), sum(b)) <- r(a, b).",
    "x(max(c), a, count(), min(b)) <- r(a, b), s(b, c).",
    "x(sum(p), count(), sum(c), upper_quantile(b, 0.3, c)) <- t(a, b, c), p = a * b.",
    "x(b, min(a), a, sum(b), max(c)) <- t(a, b, c).",
    "x(a, count(), max(b)) <- r(a, b). y(a, n) <- x(a, n, b), b > 3. z(sum(c), sum(b)) <- r(a, b), s(b, c).",
)
DISTINCT = (
    "x[a] = count(distinct b) <- r(a, b).",
    "x[] = count(distinct c) <- r(a, b), s(b, c).",
    "x(a, count(distinct c), count(), sum(b), count(distinct b)) <- t(a, b, c).",
    "x[a] = count(distinct p) <- t(a, b, c), p = if(b > c, b). y[n] = count() <- x[_] = n.",
)
AMONG = (
    'x(a, count(), sum(b)) <- r(a, b). x(a, n, v) <- s(a, _), !r(a, _), n = 1, v = cast(null, "int64").',
    "x(a, count(), sum(c)) <- r(a, b), s(b, c). x(a, count(), v) <- r(a, b), !s(b, _), v = 0.",
    "x(a, min(b), max(b)) <- r(a, b). x(b, min(a), max(c)) <- t(a, b, c). x(a, b, b) <- s(a, b).",
    "x(avg(b), a, count(distinct b)) <- r(a, b). x(v, a, n) <- s(a, n), v = 0.5.",
    "x(p, a, count(), sum(b)) <- r(a, b), p = 0. x(p, a, count(), sum(b)) <- s(a, b), p = 1. "
    "n[a] = sum(y) <- x(_, a, _, y). z[a] = sum(y) <- x(_, a, y, _).",
    "x(sum(b), count()) <- r(_, b). x(n, m) <- u[] = n, m = 1. u[] = count() <- s(_, _).",
    "x[a] = sum(b) <- r(a, b). x[a] = v <- t(a, _, _), !r(a, _), v = 0.",
)
ALTERNATIVES = (
    "x[a] = count() <- (r(a, b); s(a, b)).",
    "x(a, count(), sum(b), max(b)) <- (r(a, b); s(b, a), b > 2; t(a, _, b)).",
    "x[] = avg(c) <- r(a, b), (s(b, c); t(a, b, c)).",
    "x(a, count(distinct b), sum(b)) <- t(a, b, c), (b > c; r(a, c)). n[c] = count() <- x(_, c, _).",
    "x(a, sum(p)) <- (r(a, p); s(a, b), p = 2 * b). x(a, v) <- t(a, _, _), v = 0.",
    "bag x(a, b) <- (r(a, b); s(b, a)). bag x(a, b) <- t(a, b, _).",
    "bag x(b) <- (r(_, b); s(_, b)).",
    "x[a] = sum(b) <- (r(a, b); s(a, b)). y[a] = min(b) <- (r(a, b); s(a, b)).",
)
BAGS = (
    "bag x(a) <- r(a, b).",
    "bag x(b, b) <- r(a, b), a > 2.",
    'bag x(a, c) <- r(a, b), s(b, c). bag x(a, c) <- r(a, b), !s(b, _), c = cast(null, "int64").',
    "bag x(a, c) <- r(a, b), s(b, c).",
    "bag x(a) <- r(a, _). bag x(a) <- s(_, a). bag x(p) <- t(a, b, c), p = a - b.",
    "bag x(a) <- t(a, _, _). n[a] = count() <- x(a). bag y(a, c) <- x(a), s(a, c). z(a) <- y(a, _).",
)
WITHOUT_GROUPS = (
    "x(sum(b) default null) <- r(_, b).",
    "x(count() default 0) <- r(a, b), s(b, a).",
    "x(count() default 0, sum(b) default -1, max(a) default null) <- r(a, b).",
    "x(v) <- r(_, _), !s(_, _), v = 7. z(a) <- r(a, _). z(v) <- t(_, _, _), !r(_, _), v = 0.",
)
CHECKED = (
    "x[a] = b <- m[a] = b, n[a] = c, c > 1. m[a] = max(b) <- r(a, b). n[a] = count() <- r(a, _).",
    "x[] = d <- m[] = b, n[] = c, d = b - c. m[] = max(b) <- r(_, b). n[] = sum(a) <- s(a, _).",
)
RANGES = (
    "x[b] = sum(d) <- r(b, p), s(b, q), p - q > 1, d = p - q.",
    "x[a] = sum(d) <- t(a, v, p), t(a, w, q), p > q, d = v * p - w * q.",
    "x[] = sum(d) <- r(v, p), s(w, q), abs(p - q) >= 2, d = v * w.",
    "x[a, b] = sum(p) <- r(a, p), s(b, q), 2 * p < 3 * q.",
    "x[a] = sum(v) <- t(a, v, p), bar[] = m, p >= m. bar[] = upper_quantile(p, 0.5, v) <- t(_, v, p).",
    "x[b] = sum(w) <- r(b, p), s(w, q), p < q. y[w] = sum(p) <- r(_, p), s(w, q), p - q >= 1.",
)

LARGE = pytest.param(None, marks=pytest.mark.compiled)
"""As plain Python each line runs where the sizes are small, and those of full layers besides."""
OF_BOTH_SIZES = [
    pytest.param(rules, sizes, marks=() if sizes or rules in SEVERAL else pytest.mark.compiled)
    for sizes in (None, Sizes(rows=200, few=3, many=9, spilled=2))
    for rules in (
        *COMPUTED,
        *ORDERED,
        *SEVERAL,
        *DISTINCT,
        *AMONG,
        *ALTERNATIVES,
        *BAGS,
        *WITHOUT_GROUPS,
        *CHECKED,
    )
]
"""In which order groups of several aggregates come shows with large layers: a commit changes many."""


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "FEWEST", 1)
    monkeypatch.setattr(machine, "MOST", 1)


def both_of(
    rules: str, strategy: str = "delta", kind: Any = None, sizes: Sizes | None = None
) -> list[Workspace]:
    """A workspace with the machine, and one without, which says what is right."""
    both = [Workspace(single_changes="machine"), Workspace(single_changes="general")]
    for ws in both:
        for name, arity in ARITIES.items():
            ws.load(name, pa.table({c: pa.array([], kind or pa.int64()) for c in "abc"[:arity]}))
        ws.install(rules, strategy)
    its = of(both[0])
    its._wait, its.checks, its.sizes = 1, False, sizes or its.sizes
    return both


def commit(ws: Workspace, change: str, name: str, rows: list[tuple[Any, ...]]) -> Any:
    with ws.transaction() as tx:
        getattr(tx, change)(name, rows)
    return tx


def outcome(ws: Workspace, change: str, name: str, rows: list[tuple[Any, ...]]) -> Any:
    """What becomes of a transaction: changes of heads, or an error; and whether it went by the machine."""
    try:
        tx = commit(ws, change, name, rows)
    except errors.LftjError as error:
        return f"{type(error).__name__}: {error}", 0
    return {head: rows_of(table) for head, table in tx.changes.items()}, tx.stats.fast


def in_step(both: list[Workspace], seed: int, n: int, domain: int) -> int:
    """So many random transactions of both; how many of them went by the machine."""
    draw, fast = Random(seed), 0
    for number in range(n):
        name = draw.choice(list(ARITIES))
        count = draw.choice((1, 1, 1, 4))
        rows = [tuple(draw.randrange(domain) for _ in range(ARITIES[name])) for _ in range(count)]
        change = draw.choice(("insert", "insert", "erase"))
        (one, by_machine), (other, _) = (outcome(ws, change, name, rows) for ws in both)
        assert one == other, (change, name, rows)
        fast += by_machine
        if number % 50 == 49:
            both[0].verify()
            both[0].check_invariants()
    both[0].verify()
    return fast


@pytest.mark.in_turns
@pytest.mark.kernel
@pytest.mark.parametrize(("rules", "sizes"), OF_BOTH_SIZES)
def test_a_kind_goes_by_the_machine(rules: str, sizes: Sizes | None) -> None:
    both = both_of(rules, sizes=sizes)
    head = "x" if rules in (*BAGS, *ALTERNATIVES, *WITHOUT_GROUPS) else rules[0]
    assert "single changes go by the machine" in str(both[0].explain_maintenance(head))
    assert in_step(both, 1, 150, 7) > (130 if sizes is None else 60)


def test_an_average_of_more_than_doubles_hold_goes_the_general_way() -> None:
    """What it is kept of is the same both ways, so that the machine goes on from there."""
    both = both_of("x[a] = avg(b) <- r(a, b).")
    for change, rows, fast in (
        ("insert", [(1, 2**53)], 1),
        ("insert", [(1, -(2**53)), (2, 1), (2, 2), (3, 0), (3, -1)], 1),
        ("insert", [(1, 2**53 - 1), (1, 2)], 0),
        ("insert", [(4, 2**62), (4, 2**62 + 1), (4, 2**62 - 1)], 0),
        ("erase", [(4, 2**62), (4, 2**62 + 1), (4, 2**62 - 1)], 1),
        ("erase", [(1, 2)], 1),
        ("insert", [(2, -(2**63) + 1)], 0),
        ("erase", [(2, -(2**63) + 1)], 1),
    ):
        (one, by_machine), (other, _) = (outcome(ws, change, "r", rows) for ws in both)
        assert one == other, (change, rows)
        assert by_machine == fast or rows == [(1, 2**53)], (change, rows)  # before there is a program
    both[0].verify()
    assert sorted(both[0]["x"]) == [(1, (2**53 - 1) / 3), (2, 1.5), (3, -0.5)]


def test_figures_are_of_all_heads_that_one_has_side_by_side() -> None:
    both = both_of("x(a, count(), max(b)) <- r(a, b). y(a, sum(b), count()) <- s(a, b).")
    for i in range(5):
        made = []
        for ws in both:
            with ws.transaction() as tx:
                tx.insert("r", [(1, i)])
            made.append(tx.stats)
        assert made[0].rules.keys() == made[1].rules.keys() == {"x", "x#1", "x#2"}
        assert made[0].rules["x"].head_changes == made[1].rules["x"].head_changes
    assert made[0].fast == 1


@pytest.mark.parametrize(
    "rule",
    [
        'x(a, v) <- r(a, v). x(a, v) <- s(a, _), !r(a, _), v = cast(null, "int64").',
        "x(a, v) <- r(a, v). x(a, v) <- s(a, b), !r(a, _), v = if(b > 2, b).",
    ],
)
def test_the_first_null_goes_the_general_way(rule: str) -> None:
    """It is NULL for whoever reads the changes, and those behind it go by the machine again."""
    both, fast = both_of(rule), []
    for name, row in (
        [("r", (0, 1))] * 2 + [("r", (2, 1))] * 3 + [("s", (number, 1)) for number in range(3, 8)]
    ):
        (one, by_machine), (other, _) = (outcome(ws, "insert", name, [row]) for ws in both)
        assert one == other
        fast.append(by_machine)
    assert fast[4:6] == [1, 0] and fast[-1] == 1
    assert one["x"] == [(7, None, 1)]


@pytest.mark.kernel
@pytest.mark.parametrize("rules", RANGES)
@pytest.mark.parametrize("sizes", [LARGE, Sizes(rows=400, few=3, many=9, spilled=2)])
def test_range_sums_go_by_the_machine(rules: str, sizes: Sizes | None) -> None:
    both = both_of(rules, "views", sizes=sizes)
    assert "single changes go by the machine" in str(both[0].explain_maintenance("x"))
    searches = [search for head in both[0]._state.heads.values() for search in head.searches]
    assert any(isinstance(search, RangeSums) for search in searches)
    assert in_step(both, 1, 150, 7) > (100 if sizes is None else 30)


@pytest.mark.parametrize("rules", [*ORDERED, *RANGES])
def test_what_came_and_went_again_is_forgotten(rules: str) -> None:
    """Layers that cancel out are as none: what was looked at meanwhile does not stay."""
    both = both_of(rules, "views" if rules in RANGES else "delta")

    def rows(name: str, count: int, *values: int) -> list[tuple[int, ...]]:
        return [(a, *(value,) * (ARITIES[name] - 1)) for a in range(count) for value in values]

    for name, other in product(ARITIES, repeat=2):
        in_step(both, 1, 20, 5)
        changes = [("insert", name, 6), ("insert", name, 5), ("erase", name, 5)]
        changes += [("insert", other, 8), ("erase", other, 8)]
        made = []
        for change, its, value in changes:
            made.append([commit(ws, change, its, rows(its, 4, value)) for ws in both])
            if value == 6:
                both[0].verify()  # which folds
        assert sum(one.stats.fast for one, _ in made) >= 4
        many = rows(name, 40, 5, 9)  # goes the general way
        made += [[commit(ws, change, name, many) for ws in both] for change in ("insert", "erase")]
        for one, two in made:
            assert all(rows_of(one.changes[head]) == rows_of(two.changes[head]) for head in both[1].heads)
        both[0].verify()
        both[0].check_invariants()


def test_what_is_computed_and_does_not_fit_is_refused() -> None:
    """In the words of the general way; nothing is left behind."""
    both = both_of("x(a, c) <- r(a, b), c = a + b, c < 100. n[c] = count() <- s(a, b), c = a * b.")
    draw, large, refused, fast = Random(1), (2**62, 2**63 - 1, -(2**63) + 1, 1, 0, 5), 0, 0
    for _ in range(200):
        name, rows = draw.choice("rs"), [(draw.choice(large), draw.choice(large))]
        (one, by_machine), (other, _) = (outcome(ws, "insert", name, rows) for ws in both)
        assert one == other
        refused += isinstance(one, str)
        fast += by_machine
    assert refused > 20 and fast > 20
    both[0].verify()


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.uint8(), pa.uint32()], ids=str)
def test_narrow_columns_are_computed_in_64_bits(kind: Any) -> None:
    both = both_of(
        "x(a, c) <- r(a, b), c = a * b - 5, c != 3. y[a] = sum(c) <- s(a, b), c = a - b.", kind=kind
    )
    assert in_step(both, 3, 60, 100) > 50


PROVEN = """
total[] = sum(v) <- r(v, _).
x[] = sum(d) <- r(v, p), total[] = t, 100 * v > t, s(w, q), d = q - p.
y[a] = sum(d) <- t(a, v, p), t(a, w, q), p > q, d = v * p - w * q.
"""


@pytest.mark.parametrize("large", [(2**20,), (2**40, 2**31), (2**61, -(2**61), 2**62, 2**63 - 1)])
def test_views_stand_as_long_as_what_is_computed_fits(large: tuple[int, ...]) -> None:
    """A commit beyond the limits of a guard goes the general way, which takes views away."""
    both, draw, fast = both_of(PROVEN, "views"), Random(str(large)), 0
    guarded = both[0]._state.strata.guarded
    assert guarded
    for number in range(240):
        pool = (0, 1, 2, 3, 5) if number % 8 else large
        name, change = draw.choice(list(ARITIES)), draw.choice(("insert", "insert", "erase"))
        rows = [tuple(draw.choice(pool) for _ in range(ARITIES[name]))]
        (one, by_machine), (other, _) = (outcome(ws, change, name, rows) for ws in both)
        assert one == other, (change, name, rows)
        fast += by_machine
        if number % 20 == 19:
            both[0].verify()
            both[0].check_invariants()
            spans = [spans_of(ws._state.strata.guarded_columns, ws._state.versions) for ws in both]
            assert all(
                joined(ws._state.spans[column], span) == ws._state.spans[column]
                for ws, its in zip(both, spans, strict=True)
                for column, span in its.items()
            )
    assert fast > (100 if large == (2**20,) else 5)


def test_one_row_beyond_the_limits_goes_the_general_way() -> None:
    """Where nothing it makes is beyond 64 bits yet: limits are proven for all rows that may come."""
    for beyond in (0, 1):
        both = both_of(PROVEN, "views")
        for number in range(12):
            (one, _), (other, _) = (outcome(ws, "insert", "r", [(number, number)]) for ws in both)
            assert one == other
        state = both[0]._state
        largest = limits_of(state.strata, state.spans)["r", 0][1] + beyond
        (one, by_machine), (other, _) = (outcome(ws, "insert", "r", [(largest, 0)]) for ws in both)
        assert one == other and bool(by_machine) is not bool(beyond)


@pytest.mark.compiled
def test_values_that_went_are_forgotten() -> None:
    """Of those that are counted, many come and go: the table has at most twice those that are there."""
    both = both_of("x[a] = count(distinct b) <- r(a, b). y[] = count(distinct a) <- r(a, _).")
    fast = 0
    for number in range(3_000):
        for change, row in (("insert", (number % 7, number)), ("erase", ((number - 5) % 7, number - 5))):
            results = [commit(ws, change, "r", [row]) for ws in both]
            fast += results[0].stats.fast
    assert fast > 5_900
    assert sorted(both[0]["x"]) == sorted(both[1]["x"]) and list(both[0]["y"]) == [(5,)]
    both[0].check_invariants()
    both[0].verify()
    (counts,) = both[0]._state.heads["x"].sources[0]._groups._accumulators  # type: ignore[attr-defined]
    assert counts.n_values < 1_024 + 64


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("x(a, c) <- r(a, b), c in range(a, b).", "c in range(a, b) gives several rows"),
        ("x(a) <- r(a, b), c = a + b, !s(a, c).", "a body that is not kept by one search under delta"),
    ],
)
def test_what_else_is_computed_goes_the_general_way(rule: str, why: str) -> None:
    both = both_of(rule)
    assert f"the general way: {why}" in str(both[0].explain_maintenance("x"))
    for number in range(9):
        (one, by_machine), (other, _) = (outcome(ws, "insert", "r", [(number, 2)]) for ws in both)
        assert one == other and not by_machine


@pytest.mark.kernel
@pytest.mark.parametrize("rule", ["x[a] = b <- r(a, b).", "x[] = b <- r(_, b)."])
def test_a_second_value_of_a_key_is_refused(rule: str) -> None:
    """In the words of the general way; nothing is left behind."""
    both, draw, refused, fast = both_of(rule), Random(5), 0, 0
    for _ in range(60):
        change, rows = draw.choice(("insert", "erase")), [(draw.randrange(3), draw.randrange(2))]
        (one, by_machine), (other, _) = (outcome(ws, change, "r", rows) for ws in both)
        assert one == other, (change, rows)
        refused += isinstance(one, str)
        fast += by_machine
    assert refused > 3 and fast > 10
    both[0].verify()


def test_what_keeps_a_view_says_how_single_changes_reach_it() -> None:
    ws = Workspace(single_changes="machine")
    ws.load("sale", {"shop": [1, 1], "price": [2, 3]})
    ws.create_view("total", "select shop, sum(price) as s from sale group by shop having count(*) > 1")

    def said() -> str:
        return str(ws.explain_maintenance("total")).splitlines()[-1].strip()

    assert said() == "single changes go by the machine"
    ws.create_view("listed", "select shop, string_agg(price::varchar) as s from sale group by shop")
    assert said().startswith("single changes go the general way: 'sale', which it reads: 'listed")
