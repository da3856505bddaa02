"""Bad input from Python: each gives one clear message, and the database stays as it was and usable."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import lftj
from lftj import errors
from lftj.database.database import Database


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    """Some relations, and a folder of flawed files to be in."""
    monkeypatch.chdir(tmp_path)
    made = lftj.Database()
    made.load("edge", [(1, 2), (2, 3), (1, 3), (3, 4)], columns=["src", "dst"])
    made.load("item", [("tea", 100), ("soup", 250)], columns=["name", "pence"])
    parquet.write_table(pa.table({"a": list(range(5000))}), "whole.parquet")
    content = Path("whole.parquet").read_bytes()
    Path("cut.parquet").write_bytes(content[: len(content) // 2])
    Path("ragged.csv").write_text("a,b\n1,2\n3\n5,6\n")
    Path("notes.xyz").write_text("hello")
    Path("empty.csv").write_text("")
    return made


def nulls() -> pa.Table:
    return pa.table({"a": [1, 2, 3, 4], "b": pa.array([1.0, None, 2.0, None])})


LOADS: list[tuple[str, Callable[[], Any], dict[str, Any], type[Exception], list[str]]] = [
    ("missing file", lambda: "no such.parquet", {}, errors.SourceError, ["no such.parquet", "no such file"]),
    ("truncated Parquet", lambda: "cut.parquet", {}, errors.SourceError, ["cut.parquet"]),
    ("ragged CSV", lambda: "ragged.csv", {}, errors.SourceError, ["ragged.csv", "line 3"]),
    ("empty file", lambda: "empty.csv", {}, errors.SourceError, ["empty.csv"]),
    ("unknown kind", lambda: "notes.xyz", {}, errors.SourceError, ["notes.xyz"]),
    ("no table at all", lambda: 17, {}, errors.SourceError, ["int"]),
    ("uneven tuples", lambda: [(1, 2), (3,)], {"columns": ["a", "b"]}, errors.SourceError, ["row 1"]),
    ("NULL", nulls, {}, errors.NullError, ["'edge'", "'b'", "row 1", "1 more", 'nulls="drop"']),
    ("nested", lambda: pa.table({"a": [{}]}), {}, errors.UnsupportedTypeError, ["'edge'", "'a'", "struct"]),
    (
        "beyond int64",
        lambda: pa.table({"a": pa.array([1, 2**63], pa.uint64())}),
        {},
        errors.RangeError,
        ["'edge'", "'a'", "row 1 ", str(2**63), "decimal", "string"],
    ),
    ("unknown column", nulls, {"columns": ["c"]}, errors.SourceError, ["'c'"]),
    ("unknown policy", nulls, {"nulls": "ignore"}, ValueError, ["'ignore'", "'refuse'", "'drop'", "'keep'"]),
]


@pytest.mark.parametrize(
    ("source", "options", "error", "parts"), [load[1:] for load in LOADS], ids=[load[0] for load in LOADS]
)
def test_a_failed_load_changes_nothing(
    db: Database, source: Callable[[], Any], options: dict[str, Any], error: type[Exception], parts: list[str]
) -> None:
    rule = "h(a, b) <- edge(a, b)."
    before, shown = db.query(rule, threads=1), repr(db.relations)
    was = dict(db.relations)
    for name in ("edge", "new"):
        with pytest.raises(error) as caught:
            db.load(name, source(), **options)
    message = str(caught.value)
    assert all(part.replace("'edge'", "'new'") in message for part in parts), message
    assert "Traceback" not in message and len(message.splitlines()) <= 3
    assert repr(db.relations) == shown and list(db.relations) == list(was)
    assert all(db.relations[name] is relation for name, relation in was.items())
    assert db.query(rule, threads=1).equals(before)


def test_a_source_that_fails_on_the_way(db: Database) -> None:
    def rows() -> Any:
        yield (1, 2)
        raise OSError("the disk is gone")

    with pytest.raises((errors.SourceError, OSError), match="the disk is gone"):
        db.load("edge", rows(), columns=["a", "b"])
    assert db.count("h(a, b) <- edge(a, b).") == 4


def test_null_rows_are_dropped_on_request(db: Database) -> None:
    db.load("n", nulls(), nulls="drop")
    assert db.relations["n"].dropped_rows == 2 and "(2 with NULL dropped)" in repr(db.relations)
    assert db.query("h(a) <- n(a, _).", threads=1).to_pydict() == {"a": [1, 3]}


RULES: list[tuple[str, type[errors.RuleError], str]] = [
    ("h(a) <- edge(a, b)", errors.RuleSyntaxError, "the rule does not end with a dot"),
    ("h(a) <- edge(a, b,.", errors.RuleSyntaxError, "^"),
    ("", errors.RuleError, "the program has no rule"),
    ("h(a) <- egde(a, _).", errors.UnknownRelationError, "unknown relation 'egde'; did you mean 'edge'?"),
    ("h(a) <- edge(a).", errors.ArityError, "edge"),
    ("h(c) <- edge(a, b).", errors.UnboundVariableError, "c"),
    ("h(a) <- edge(a, _), !edge(a, c), !item(_, c).", errors.UnsafeNegationError, "c"),
    ("h(a) <- edge(a, _), item(a, _).", errors.TypeClashError, "can't be joined"),
    ('h(a) <- edge(a, "x").', errors.TypeClashError, "edge"),
    ("h(a) <- edge(a, _), !h(a).", errors.StratificationError, "h"),
    ("h(a, b) <- h(b, a). h(a, c) <- h(a, b), edge(b, c).", errors.RuleError, "'h' can't begin"),
    ("edge(a) <- item(a, _).", errors.RuleError, "'edge' is loaded data"),
]


@pytest.mark.parametrize(("rule", "error", "part"), RULES)
@pytest.mark.parametrize("call", ["query", "count", "stream", "explain", "trace", "check"])
def test_a_wrong_rule(db: Database, call: str, rule: str, error: type[errors.RuleError], part: str) -> None:
    with pytest.raises(error) as caught:
        getattr(db, call)(rule)
    message = str(caught.value)
    assert part in message
    if rule:
        assert "^" in message and caught.value.span is not None
    assert db.count("h(a) <- edge(a, _).") == 3


def test_types_that_can_not_meet_name_both_columns(db: Database) -> None:
    with pytest.raises(errors.TypeClashError) as caught:
        db.query("h(a) <- edge(a, _), item(a, _).")
    assert all(part in str(caught.value) for part in ("src", "edge", "int64", "name", "item", "string"))


def test_nan_in_a_key(db: Database) -> None:
    db.load("m", pa.table({"d": [1, 2], "v": [0.5, math.nan]}))
    with pytest.raises(errors.NanError, match="relation 'm', column 'v': NaN in row 1"):
        db.query("h(d, v) <- m(d, v).")
    assert db.count("h[d] = v <- m[d] = v.") == 2


def test_a_cartesian_product_is_allowed_and_named(db: Database) -> None:
    rule = "h(a, b, n) <- edge(a, b), item(n, _)."
    with pytest.warns(errors.CartesianProductWarning) as caught:
        assert db.query(rule).num_rows == 8
    (warning,) = caught
    assert str(warning.message) == (
        "cartesian product: the parts {a, b} x {n} of the body share no variable\n  " + rule
    )
    with pytest.warns(errors.CartesianProductWarning, match=r"\{_1, _2\} x \{a, b\}"):
        assert db.query("c[a] = count() <- edge(a, b), item(_, _).").num_rows == 3


CALLS: dict[str, Callable[[Database, str], Any]] = {
    "query": lambda db, rule: db.query(rule, threads=1),
    "stream": lambda db, rule: list(db.stream(rule)),
    "count": lambda db, rule: db.count(rule),
    "explain": lambda db, rule: db.explain(rule),
    "explain analyze": lambda db, rule: db.explain(rule, analyze=True),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(
    "rule",
    [
        "h(a, b, n) <- edge(a, b), item(n, _).",
        "h(a, n) <- edge(a, b), item(n, _).",
        "c[a] = count() <- edge(a, b), item(_, _).",
        "q(a) <- edge(a, _). h(a, n) <- q(a), item(n, _).",
    ],
)
def test_each_call_warns_once_at_the_callers_line(
    db: Database, call: Callable[[Database, str], Any], rule: str
) -> None:
    for _ in range(2):
        with pytest.warns(errors.CartesianProductWarning) as caught:
            call(db, rule)
        (warning,) = caught
        assert warning.filename == __file__ and warning.lineno == call.__code__.co_firstlineno


def test_a_functional_conflict_names_head_key_values_and_rule(db: Database) -> None:
    rule = "last[a] = b <- edge(a, b)."
    for call in (db.query, db.count, lambda r: list(db.stream(r)), lambda r: db.explain(r, analyze=True)):
        with pytest.raises(errors.FunctionalConflictError) as caught:
            call(rule)
        assert str(caught.value) == (
            f"last[1] has two values, 2 and 3; a functional head takes one per key\n  {rule}"
        )
    program = "p[n] = x <- item(n, x). p[n] = y <- item(n, x), y = x + 1."
    with pytest.raises(errors.FunctionalConflictError) as caught:
        db.query(program)
    message = str(caught.value)
    assert message.startswith(
        ('p["tea"] has two values, 100 and 101', 'p["soup"] has two values, 250 and 251')
    )
    assert all(rule.strip() in message for rule in program.split(". ")), "both rules are shown"
    # Read by a rule it conflicts too, and data that is no function can't be read as one.
    with pytest.raises(errors.FunctionalConflictError, match="last"):
        db.query(rule + " h(a) <- last[a] = 2.")
    with pytest.raises(errors.FunctionalConflictError, match=r"'edge' can't be read as a function of src"):
        db.query("h(a) <- edge[a] = b.")
    assert db.query("both[a, b] = b <- edge(a, b).").num_rows == 4


@pytest.mark.parametrize(
    ("rule", "error", "parts"),
    [
        ("h(v) <- edge(a, b), v = a / (b - 3).", errors.EvaluationError, ["division by zero", "b = 3"]),
        (
            "h(v) <- edge(a, b), v = a * 9223372036854775807.",
            errors.RangeError,
            ["does not fit type int64 where a = "],
        ),
        ("h(a) <- edge(a, b), a / (b - 3) > 1.", errors.EvaluationError, ["division by zero", "b = 3"]),
        ("s[] = sum(v) <- edge(a, b), v = a + 9223372036854775800.", errors.RangeError, ["s[]"]),
    ],
)
def test_a_rule_that_fails_on_a_row(
    db: Database, rule: str, error: type[errors.LftjError], parts: list[str]
) -> None:
    for call in (db.query, db.count, lambda r: list(db.stream(r))):
        with pytest.raises(error) as caught:
            call(rule)
        message = str(caught.value)
        assert all(part in message for part in parts) and message.endswith(f"\n  {rule}"), message
    assert db.count("h(a) <- edge(a, _).") == 3
