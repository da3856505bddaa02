"""oracle: heads that are bags, beside DuckDB's UNION ALL, EXCEPT ALL and INTERSECT ALL, once and kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import lftj
from lftj import errors
from lftj.session.session import Session
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from maintenance.image import read_image, write_image
from support import peer

Row = tuple[Any, ...]
Bag = Counter[Row]

RULES = """
bag both(a, b) <- x(a, b).
bag both(a, b) <- y(a, b).
nx[a, b] = count() <- x(a, b).
ny[a, b] = count() <- y(a, b).
bag left(a, b, copies: w) <- nx(a, b, p), (ny(<=> a, <=> b, q) ; !ny(<=> a, <=> b, _), q = 0), w = p - q.
bag shared(a, b, copies: w) <- nx(a, b, p), ny(<=> a, <=> b, q), w = least(p, q).
bag weighed(b, copies: a) <- x(a, b).
bag joined(a, c) <- both(a, b), y(b, c).
bag some(a) <- x(a, _), (a = 1 ; a < 3).
bag again(v) <- both(v, _), v > 0.
bag again(v) <- left(_, v).
bag again(w) <- joined(w, _).
bag none(a, copies: w) <- x(a, b), w = least(b, 0).
bag ranked(a, r) <- both(a, b), r = rank(by: b, per: a).
sold[a] = count() <- again(a).
total[] = sum(v) <- again(v).
seen(a) <- again(a).
lost(a, b) <- both(a, b), !left(<=> a, <=> b).
"""

SQL = {
    "both": "select * from x union all select * from y",
    "left": "select * from x except all select * from y",
    "shared": "select * from x intersect all select * from y",
    "weighed": "select x.b from x, generate_series(1, x.a)",
    "joined": "select l.a, y.b from (both_) l, y where l.b = y.a",
    "some": "select a from x where a < 3",
    "none": "select a from x where false",
    "again": (
        "select a from (both_) where a > 0 union all select b from (left_) union all select a from (joined_)"
    ),
    "ranked": "select a, rank() over (partition by a order by b nulls last) from (both_)",
    "sold": "select a, count(*) from (again_) t(a) group by a",
    "total": "select sum(a)::bigint from (again_) t(a) having count(a) > 0",
    "seen": "select distinct a from (again_) t(a)",
    "lost": "select a, b from (both_) except select a, b from (left_)",
}

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64())])
BAGS = ("both", "left", "shared", "weighed", "joined", "some", "none", "again", "ranked")


def query_of(name: str) -> str:
    text = SQL[name]
    for other in ("both", "left", "joined", "again"):
        if f"{other}_" in text:
            text = text.replace(f"({other}_)", f"({query_of(other)})")
    return text


def table(bag: Bag) -> pa.Table:
    a, b = zip(*bag.elements(), strict=True) if bag else ((), ())
    return pa.table([a, b], schema=SCHEMA)


def expected(bags: Mapping[str, Bag]) -> dict[str, Bag]:
    """By DuckDB."""
    with peer.connection() as connection:
        for name, bag in bags.items():
            connection.register(name, table(bag))
        return {name: Counter(connection.sql(query_of(name)).fetchall()) for name in SQL}


def drawn(random: Random, n_rows: int) -> list[Row]:
    def value() -> int | None:
        return None if random.random() < 0.15 else random.randint(-1, 4)

    return [(value(), value()) for _ in range(n_rows)]


def counted(table: pa.Table) -> Bag:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def weighted(table: pa.Table) -> Bag:
    rows = [tuple(row.values()) for row in table.to_pylist()]
    assert len({row[:-1] for row in rows}) == len(rows)
    return Counter({row[:-1]: row[-1] for row in rows})


def difference(new: Bag, old: Bag) -> Bag:
    return Counter({row: new[row] - old[row] for row in new | old if new[row] != old[row]})


def loaded(database: lftj.Database, seed: str, n_rows: int = 40) -> dict[str, Bag]:
    random = Random(seed)
    bags = {"x": Counter(drawn(random, n_rows)), "y": Counter(drawn(random, n_rows // 2))}
    for name, bag in bags.items():
        database.load(name, table(bag), nulls="keep", bag=True)
    return bags


def changed(random: Random, bags: dict[str, Bag], tx: Any) -> None:
    for name in bags:
        came, gone = drawn(random, random.randrange(4)), drawn(random, random.randrange(9))
        tx.insert(name, table(Counter(came)))
        tx.erase(name, table(Counter(gone)))
        net = Counter(came)
        net.subtract(gone)
        bags[name] = +Counter({row: max(0, bags[name][row] + net[row]) for row in bags[name] | net | -net})


@pytest.mark.parametrize("seed", ["few", "some", "many"])
def test_once(seed: str) -> None:
    db = lftj.Database()
    bags = loaded(db, seed, {"few": 3, "some": 40, "many": 400}[seed])
    for name, bag in expected(bags).items():
        assert counted(db.query(RULES, head=name)) == bag, name
        assert db.count(RULES, head=name) == bag.total(), name
        batches = list(db.stream(RULES, head=name, batch_rows=7))
        assert {batch.num_rows for batch in batches[:-1]} <= {7}
        assert counted(pa.Table.from_batches(batches)) == bag, name
    first = db.query(RULES, head="both", order_by="b desc, a", limit=9).to_pylist()
    rows = sorted(
        expected(bags)["both"].elements(),
        key=lambda row: (row[1] is None, -(row[1] or 0), row[0] is None, row[0] or 0),
    )
    assert [tuple(row.values()) for row in first] == rows[:9]


@pytest.mark.in_turns
@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "stages"])
def test_kept(strategy: str) -> None:
    workspace = Workspace()
    bags = loaded(workspace, strategy)
    workspace.install(RULES, strategy)
    told: dict[str, list[pa.Table]] = {name: [] for name in BAGS}
    for name in BAGS:
        workspace.subscribe(name, told[name].append)
    random = Random(strategy)
    rows = expected(bags)
    begun, version = rows, workspace.version
    for _ in range(8):
        before = rows
        with workspace.transaction() as tx:
            changed(random, bags, tx)
        rows = expected(bags)
        for name, bag in rows.items():
            assert Counter(workspace[name]) == bag, name
            assert len(workspace[name]) == bag.total()
            assert all(row in workspace[name] for row in bag)
            assert weighted(tx.changes[name]) == difference(bag, before[name])
        workspace.check_invariants()
    workspace.verify()
    for name in BAGS:
        since = workspace.changes_since(version, name)
        assert weighted(since.table) == difference(rows[name], begun[name])
        sums: Bag = Counter()
        for each in told[name]:
            sums.update(weighted(each))
        assert {row: n for row, n in sums.items() if n} == difference(rows[name], begun[name])
    query = "bag h(a) <- again(a). bag h(a) <- x(a, _)."
    assert counted(workspace.query(query)) == rows["again"] + Counter((a,) for a, _ in bags["x"].elements())


def test_a_batch_is_its_transactions_one_after_the_other() -> None:
    workspace, alone = Workspace(), Workspace()
    for each in (workspace, alone):
        loaded(each, "batch")
    rules = "\n".join(line for line in RULES.split("\n") if "rank(" not in line)
    workspace.install(rules, "delta")
    alone.install(rules, "recompute")
    assert "batches" not in workspace.explain_maintenance("both")
    random = Random(11)
    rows = [(*row, random.randrange(-4, 5), txn) for txn in range(9) for row in drawn(random, 4)]
    columns = list(zip(*rows, strict=True))
    schema = pa.schema([*SCHEMA, ("weight", pa.int64()), ("txn", pa.int64())])
    changes = pa.table(list(map(list, columns)), schema=schema)
    applied = workspace.apply_many({"x": changes})
    for number, change in zip(applied.transactions, applied, strict=True):
        with alone.transaction() as tx:
            tx.apply("x", changes.filter(pa.compute.equal(changes["txn"], number)).drop(["txn"]))
        for name in BAGS[:-1]:
            assert weighted(change[name]) == weighted(tx.changes[name]), name
    workspace.verify()


def test_in_a_folder_and_an_image(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "ws") as workspace:
        bags = loaded(workspace, "folder")
        workspace.install(RULES)
        version, begun = workspace.version, expected(bags)
        with workspace.transaction() as tx:
            changed(Random(3), bags, tx)
    rows = expected(bags)
    for checkpoint in (True, False):
        with Workspace.open(tmp_path / "ws") as workspace:
            for name, bag in rows.items():
                assert Counter(workspace[name]) == bag
            for name in BAGS:
                since = workspace.changes_since(version, name)
                assert weighted(since.table) == difference(rows[name], begun[name])
            workspace.verify()
            if checkpoint:
                workspace.checkpoint()
                workspace.save(tmp_path / "copy")
                write_image(workspace, tmp_path / "image")
    for read in (Workspace.load_from(tmp_path / "copy"), read_image(tmp_path / "image")):
        now = dict(bags)
        with read.transaction() as tx:
            changed(Random(4), now, tx)
        for name, bag in expected(now).items():
            assert Counter(read[name]) == bag


def test_nobody_sees_the_numbers_of_copies() -> None:
    workspace = Workspace()
    workspace.load("e", [(1, 2), (1, 3)], columns=["a", "b"])
    workspace.install("bag h(a) <- e(a, _).")
    head = workspace["h"]
    assert (head.column_names, len(head), list(head), (1,) in head, (2,) in head) == (
        ["a"],
        2,
        [(1,), (1,)],
        True,
        False,
    )
    assert "#" not in repr(head) + repr(workspace.relations)
    with workspace.transaction() as tx:
        tx.insert("e", [(1, 4), (1, 5), (1, 6), (2, 2)])
    assert tx.changes["h"].to_pylist() == [{"a": 1, "weight": 3}, {"a": 2, "weight": 1}]
    with pytest.raises(errors.LftjError, match="'h' is the head of an installed rule"):
        workspace.install("bag h(a) <- e(a, _).")
    workspace.install("h(a) <- e(a, _).", replace=True)
    assert sorted(workspace["h"]) == [(1,), (2,)]


def test_changes_are_told_with_whole_weights() -> None:
    workspace = Workspace()
    workspace.load("e", [(1, 2), (1, 3)], columns=["a", "b"])
    workspace.install("bag h(a, copies: b) <- e(a, b).")
    assert "  h(a) += greatest(b, 0)" in str(workspace.triggers("h")).splitlines()
    said: list[object] = []
    session = Session(workspace, lambda batches: [batch.to_pylist() for batch in batches], said.append)
    session.execute(".watch h")
    session.execute(".erase e (1, 3)")
    session.execute(".insert e (2, 1), (3, 0)")
    assert said == ["-3 h(1)", "+ h(2)"]
    assert session.execute("bag g(a) <- h(a).") == [[{"a": 1}, {"a": 1}, {"a": 2}]]


@pytest.mark.parametrize(
    ("rules", "rows"),
    [
        ("bag h(a) <- bag(a, _).", [(1,), (1,), (2,)]),
        ("bag h(bag) <- bag(bag, b), bag > 1.", [(2,)]),
        ("n[x] = count() <- h(x). bag\n  h(a) <- bag(a, _).", [(1, 2), (2, 1)]),
        ("bag h(a, a) <- bag(a, _).", [(1, 1), (1, 1), (2, 2)]),
        ("bag h(copies: n, a) <- bag(a, n).", [(1,)] * 5 + [(2,)] * 3),
        ("h(a, copies: n) <- bag(a, n).", [(1, 2), (1, 3), (2, 3)]),
        ("bag h(copies) <- bag(copies, _).", [(1,), (1,), (2,)]),
        ("bag h(x: a, y: b) <- bag(a, b). bag h(y: a, x: b) <- bag(a, b), a > 1.", 0),
        ("bag h(a) <- bag(a, _), (a = 1 ; a < 3).", [(1,), (1,), (2,)]),
        ("bag h(a, b) <- bag(a, b), top(1, by: b, per: a).", [(1, 3), (2, 3)]),
        ("bag h(a, copies: w) <- bag(a, b), w = if(b = 2, 4).", [(1,)] * 4),
    ],
)
def test_as_written(rules: str, rows: Any) -> None:
    db = lftj.Database()
    db.load("bag", [(1, 2), (1, 3), (2, 3)], columns=["a", "b"])
    if rows == 0:
        rows = [(1, 2), (1, 3), (2, 3), (3, 2)]
    head = "n" if rules.startswith("n[") else "h"
    assert sorted(counted(db.query(rules, head=head)).elements()) == rows


REFUSED = """
bag h[a] = b <- e(a, b).
    RuleSyntaxError: a bag is no function: write bag h(a, b)
bag h(a, sum(b)) <- e(a, b).
    RuleSyntaxError: a bag counts no groups: derive the aggregate in a rule of its own, and read that here
bag h(a) <- e(a, _). h(b) <- e(_, b).
    RuleError: 'h' is no bag here and a bag in its first rule: write bag in front of each head 'h', or of none
h(a) <- e(a, _). bag h(b) <- e(_, b).
    RuleError: 'h' is a bag here and no bag in its first rule: write bag in front of each head 'h', or of none
bag h(a) <- e(a, b). bag h(b) <- h(a), e(a, b).
    StratificationError: 'h' depends on its own copies: h -> h
bag h(a) <- g(a). g(a) <- h(a).
    StratificationError: 'h' depends on its own copies: h -> g -> h
bag h(copies: b) <- e(a, b).
    RuleSyntaxError: head 'h' needs at least one variable
bag h(a, copies: 3) <- e(a, _).
    RuleSyntaxError: a head takes variables only: write v here and v = 3 in the body
bag h(a, copies: b, copies: a) <- e(a, b).
    RuleSyntaxError: 'copies' stands here twice
bag h(a, copies: z) <- e(a, _).
    UnboundVariableError: 'z', which head 'h' needs, is bound by no positive atom or assignment
bag h(a, copies: w) <- e(a, _), w = 0.5.
    TypeClashError: the copies of 'h' are whole numbers, and 'w' is of type decimal128(1, 1)
bag h(a) <- e(a, _). g(b) <- h[] = b.
    ArityError: 'h' is a bag: it is no function, write h(a)
bag h(a) <- e(a, _). g(b) <- h(b, _).
    ArityError: 'h' has 1 column (a), not 2
bag h(a, copies: w) <- e(a, _), w = 2000000000000.
    RangeError: h has more than 1,099,511,627,776 copies of rows: keep their number as a column
"""


@pytest.mark.parametrize("case", REFUSED.strip().replace("\n    ", "\t").split("\n"))
def test_refused(case: str) -> None:
    rules, expected = case.split("\t")
    db = lftj.Database()
    db.load("e", [(1, 2)], columns=["a", "b"])
    with pytest.raises(errors.LftjError) as caught:
        db.query(rules, head="h")
    assert f"{type(caught.value).__name__}: {caught.value}".split("\n")[0] == expected
