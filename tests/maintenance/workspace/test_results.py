"""Programs of which some heads are wanted: the others are kept for the keys that these read.

The wanted heads are those of brute force whatever changes, by every strategy; operations say what is spared.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from lftj import Database, errors
from maintenance import Workspace
from support.bound_readers import HEADS, data_of, reader, whatever_it_costs
from support.kept_lives import without_image
from support.reference import Row, evaluate
from support.rows import rows_of
from support.rules import Program, Rule, atom, render
from support.sets import load_set

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")

NOT_RECURSIVE = ("trace", "delta", "views", "recompute", "auto")
RECURSIVE = ("stages", "recompute", "auto")


def load(database: Database, data: dict[str, set[Row]], nulls: bool) -> None:
    for name, rows in data.items():
        width = len(next(iter(rows)))
        columns = {f"c{at}": pa.array([row[at] for row in rows], pa.int64()) for at in range(width)}
        load_set(database, name, pa.table(columns), nulls="keep" if nulls else "refuse")


def chosen_strategies(database: Database, program: Program, random: Random) -> dict[str, str]:
    checked = database.check(render(program))
    found: dict[str, str] = {}
    for rule in program:
        for head in rule.heads:
            name = head.relation
            inside = checked.component_of(name)
            known = next((found[one] for one in inside if one in found), None)
            found[name] = known or random.choice(RECURSIVE if inside else NOT_RECURSIVE)
    return found


def change(workspace: Workspace, data: dict[str, set[Row]], random: Random, nulls: bool) -> object:
    """Rows that come and go, of one relation or of all."""
    with workspace.transaction() as transaction:
        for name in random.sample(list(data), random.choice((1, 1, 3))):
            rows = data[name]
            gone = set(random.sample(sorted(rows, key=repr), min(len(rows) - 1, random.randrange(3))))
            came = {
                tuple(
                    None if nulls and random.random() < 0.15 else random.randrange(6)
                    for _ in next(iter(rows))
                )
                for _ in range(random.randrange(3))
            } - rows
            transaction.erase(name, gone)
            transaction.insert(name, came)
            rows -= gone
            rows |= came
    return transaction.changes["q"].to_pylist()


@pytest.mark.in_turns
@pytest.mark.parametrize("form", HEADS)
def test_oracle_wanted_heads_are_those_of_brute_force(form: str, tmp_path: Path) -> None:
    arity, rules = HEADS[form]
    with_keys = 0
    for seed in range(8):
        random = Random(f"kept {form} {seed}")
        nulls = seed % 4 == 3
        data = {name: set(rows) for name, rows in data_of(random, nulls).items()}
        readers = [reader(random, "h", arity)]
        if random.random() < 0.5:
            readers = [reader(random, "h", arity, "k"), *readers]
            columns = len(readers[0].heads[0].terms)
            names = ("a", *("_" for _ in range(columns - 1)))
            readers[1] = Rule(readers[1].heads, (*readers[1].body, atom("k", *names)))
        program = (*rules, *readers)
        results = ["q", "k"] if len(readers) > 1 and random.random() < 0.5 else ["q"]
        in_folder = seed % 3 == 0
        workspace = Workspace.open(tmp_path / str(seed)) if in_folder else Workspace()
        load(workspace, data, nulls)
        with whatever_it_costs(by_heads=seed % 2 == 0):
            workspace.install(render(program), chosen_strategies(workspace, program, random), results=results)
        strata = workspace.explain_maintenance().splitlines()
        with_keys += any("#keys" in line for line in strata)
        assert set(workspace.heads) == set(results)
        for step in range(6):
            before = {result: set(rows_of(workspace[result].table)) for result in results}
            changes = change(workspace, data, random, nulls)
            for result in results:
                expected = evaluate(program, data, result)
                assert set(rows_of(workspace[result].table)) == expected, (render(program), seed, step)
            now = set(rows_of(workspace["q"].table))
            assert {tuple(row.values()) for row in changes} == (  # type: ignore[attr-defined]
                {(*row, 1) for row in now - before["q"]} | {(*row, -1) for row in before["q"] - now}
            )
            if step == 2:
                workspace.set_strategy("q", random.choice(NOT_RECURSIVE))
            if step == 3 and in_folder:
                notes = said(workspace, results)
                workspace.close()
                if random.random() < 0.5:
                    without_image(tmp_path / str(seed))
                workspace = Workspace.open(tmp_path / str(seed))
                assert said(workspace, results) == notes
        workspace.verify()
        workspace.check_invariants()
        workspace.close()
    assert with_keys >= 3


def said(workspace: Workspace, results: list[str]) -> list[str]:
    """What heads are kept for, and what each reads, keys too."""
    texts = [workspace.explain_maintenance(name) for name in results]
    notes = [line for text in texts for line in text.splitlines() if line.startswith("  for it ")]
    strata = workspace.explain_maintenance().splitlines()[1:]
    return [*notes, *(line.rpartition("  ")[0].rstrip() for line in strata)]


# -- what it spares -------------------------------------------------------------------------------

WAITING = """
other(o, s) <- line(o, s, 1), line(o, t, _), t != s.
otherlate(o, s) <- line(o, s, 1), line(o, t, 1), t != s.
q(s, n: count()) <- supplier(s, 3), line(o, s, 1), other(o, s), !otherlate(o, s).
"""


def orders(workspace: Workspace, n_orders: int = 20_000) -> Workspace:
    random = Random(7)
    lines = sorted(
        {(o, random.randrange(50), random.randrange(2)) for o in range(n_orders) for _ in range(6)}
    )
    load_set(workspace, "line", lines, columns=["o", "s", "late"])
    load_set(workspace, "supplier", [(s, s % 25) for s in range(50)], columns=["s", "nation"])
    return workspace


@pytest.mark.compiled
def test_only_the_keys_that_are_read_are_kept() -> None:
    whole, for_q = orders(Workspace()), orders(Workspace())
    whole.install(WAITING, "delta")
    for_q.install(WAITING, "delta", results="q")
    assert set(for_q["q"]) == set(whole["q"])
    assert for_q.heads == ("q",)
    kept, all_rows = for_q.stats.rows, whole.stats.rows
    assert kept["other"] < all_rows["other"] / 10
    taken = []
    for workspace in (whole, for_q):
        with workspace.transaction() as transaction:
            transaction.insert("line", [(o, s, 1) for o in range(30) for s in (7, 8, 9)])
        rules = transaction.stats.rules
        taken.append(sum(rules[name].head_changes for name in ("other", "otherlate")))
    assert taken[1] == 0 < taken[0]
    assert set(for_q["q"]) == set(whole["q"])
    for_q.verify()


@pytest.mark.compiled
def test_a_key_that_goes_takes_what_it_asked_for() -> None:
    workspace = orders(Workspace())
    workspace.install(WAITING, results=["q"])
    assert workspace.stats.rows["other"] > 1000
    with workspace.transaction() as transaction:
        transaction.erase("supplier", [(3, 3), (28, 3)])
    assert workspace.stats.rows["other"] == workspace.stats.rows["otherlate"] == 0
    with workspace.transaction() as transaction:
        transaction.insert("supplier", [(4, 3)])
    assert workspace.stats.rows["other"] > 500
    workspace.verify()


@pytest.mark.compiled
@pytest.mark.parametrize("strategy", RECURSIVE)
def test_what_a_few_sources_reach(strategy: str) -> None:
    n_nodes = 2000
    edges = {(n, n + 1) for n in range(n_nodes) if n % 40}
    for rules in (
        "reach(x, y) <- e(x, y). reach(x, z) <- reach(x, y), e(y, z).",
        "reach(x, y) <- e(x, y). reach(x, z) <- e(x, y), reach(y, z).",
    ):
        workspace = Workspace()
        workspace.load("e", edges, columns=["x", "y"])
        workspace.load("source", [(41,), (700,)], columns=["x"])
        workspace.install(f"{rules} q(x, y) <- source(x), reach(x, y).", {"reach": strategy}, results="q")
        assert workspace.stats.rows["reach"] == workspace["q"].count == 39 + 20
        with workspace.transaction() as transaction:
            transaction.insert("source", [(81,)])
            transaction.erase("source", [(700,)])
            transaction.erase("e", [(50, 51)])
        assert workspace.stats.rows["reach"] == workspace["q"].count == 9 + 39
        workspace.set_strategy("reach", "recompute")
        with workspace.transaction() as transaction:
            transaction.insert("e", [(50, 51)])
        assert workspace.stats.rows["reach"] == workspace["q"].count == 39 + 39
        workspace.verify()
        workspace.check_invariants()


def test_strategies_are_those_of_the_program_as_written() -> None:
    workspace = Workspace()
    workspace.load("e", [(1, 2)], columns=["x", "y"])
    rules = "reach(x, y) <- e(x, y). reach(x, z) <- e(x, y), reach(y, z). q(y) <- reach(1, y)."
    with whatever_it_costs():
        with pytest.raises(errors.StrategyError, match="no strategy 'delta' for 'reach', which depends on"):
            workspace.install(rules, {"reach": "delta"}, results="q")
        workspace.install(rules, {"reach": "stages", "q": "delta"}, results="q")
    with pytest.raises(errors.StrategyError, match="no strategy 'delta' for 'reach', which depends on"):
        workspace.set_strategy("reach", "delta")
    workspace.set_strategy("reach", "stages")
    assert (workspace.strategy_of("q"), workspace.strategy_of("reach")) == ("delta", "auto")


# -- what others see ------------------------------------------------------------------------------

OTHER = "h(x, y) <- e(x, y), e(y, x). r(x) <- h(x, _). q(y) <- u(x), h(x, y)."


def small(workspace: Workspace) -> Workspace:
    load_set(workspace, "e", [(1, 2), (2, 1), (3, 4), (4, 3)], columns=["x", "y"])
    load_set(workspace, "u", [(1,)], columns=["x"])
    return workspace


READERS: list[Callable[[Workspace], object]] = [
    lambda ws: ws["h"],
    lambda ws: ws.query("z(x) <- h(x, _)."),
    lambda ws: ws.install("z(x) <- h(x, _)."),
    lambda ws: ws.subscribe("h", print),
    lambda ws: ws.changes_since(ws.version, "h"),
    lambda ws: ws.follow("h"),
    lambda ws: ws.snapshot()["h"],
    lambda ws: ws.snapshot().query("z(x) <- h(x, _)."),
]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("costs", [True, False])
def test_other_heads_can_not_be_read_whether_they_are_whole_or_not(
    read: Callable[[Workspace], object], costs: bool
) -> None:
    workspace = small(Workspace())
    if costs:
        with whatever_it_costs():
            workspace.install(OTHER, results=["q"])
    else:
        workspace.install(OTHER, results=["q"])
    with pytest.raises(
        errors.UnknownRelationError, match=r"'h' is kept for 'q' alone.*name it among results="
    ):
        read(workspace)
    assert "h" not in workspace and "h" not in workspace.relations and workspace.heads == ("q",)
    assert "h" not in workspace.snapshot()


def test_the_name_of_another_head_is_taken() -> None:
    workspace = small(Workspace())
    workspace.install(OTHER, results="q")
    for call in (workspace.install, workspace.query):
        with pytest.raises(errors.RuleError, match="'h' is the head of an installed rule"):
            call("h(x) <- e(x, _).")
    with pytest.raises(errors.ChangeError, match="'h' is the head of an installed rule"):
        load_set(workspace, "h", [(1,)], columns=["x"])
    workspace.install("h(x) <- e(x, _). q(x) <- h(x).", replace=True)
    assert set(workspace["h"]) == {(1,), (2,), (3,), (4,)}


def test_results_that_are_not_there() -> None:
    workspace = small(Workspace())
    with pytest.raises(errors.UnknownRelationError, match="unknown head 'p'"):
        workspace.install(OTHER, results=["q", "p"])
    with pytest.raises(errors.UnknownRelationError, match=r"results= names no head.* h, r, q"):
        workspace.install(OTHER, results=[])
    assert workspace.heads == ()


def test_what_no_result_needs_is_not_kept() -> None:
    workspace = small(Workspace())
    workspace.install(OTHER, results="q")
    with pytest.raises(errors.UnknownRelationError, match="unknown head 'r'"):
        workspace.strategy_of("r")
    workspace.install("r(x) <- e(x, _).")
    assert set(workspace["r"]) == {(1,), (2,), (3,), (4,)}


def test_heads_go_with_the_last_that_needs_them() -> None:
    for costs in (True, False):
        workspace = small(Workspace())
        rules = f"{OTHER} p(y) <- q(x), h(x, y), u(_)."
        if costs:
            with whatever_it_costs():
                workspace.install(rules, results=["q", "r", "p"])
        else:
            workspace.install(rules, results=["q", "r", "p"])
        with pytest.raises(errors.ChangeError, match=r"the rules of '[qrp]' read 'h'"):
            workspace.uninstall("h")
        workspace.uninstall("r")
        assert "h" in workspace.stats.rows
        workspace.uninstall("p", "q")
        assert workspace.stats.rows.keys() == {"e", "u"}
        workspace.install("h(x) <- e(x, _).")


def test_a_result_that_gives_keys_stays_as_long_as_they_are_asked_for() -> None:
    workspace = small(Workspace())
    with whatever_it_costs():
        workspace.install(
            "k(x) <- u(x). h(x, y) <- e(x, y), e(y, x). q(y) <- k(x), h(x, y). p(y) <- u(x), h(x, y).",
            results=["k", "q", "p"],
        )
    assert "h#keys1(x) <- k(x)" in workspace.explain_maintenance("h")
    with pytest.raises(errors.ChangeError, match=r"'h' is kept for keys that 'k' gives, until its program"):
        workspace.uninstall("k", "q")
    workspace.uninstall("k", "q", "p")
    assert workspace.heads == ()


def test_replaced_by_what_wants_more() -> None:
    workspace = small(Workspace())
    heard: list[object] = []
    workspace.install(OTHER, results="q")
    workspace.subscribe("q", heard.append)
    number = workspace.version
    workspace.install(OTHER, results="q", replace=True)
    assert workspace.version == number, "nothing to do"
    workspace.install(OTHER, results=["q", "h"], replace=True)
    assert workspace.heads == ("h", "q")
    workspace.install("z(x) <- h(x, _).")
    assert set(workspace["z"]) == {(1,), (2,), (3,), (4,)}
    with pytest.raises(errors.ChangeError, match="the rules of 'z' read 'h'"):
        workspace.install(OTHER, results="q", replace=True)
    workspace.uninstall("z")
    workspace.install(OTHER, replace=True)
    assert workspace.heads == ("h", "r", "q")
    with workspace.transaction() as transaction:
        transaction.insert("u", [(3,)])
    assert len(heard) == 1


def test_what_aggregates_are_made_of_is_replaced_with_them() -> None:
    for results in (None, "n"):
        workspace = small(Workspace())
        rules = "n(x, upper_quantile(y, 1), mode(y)) <- e(x, y). z(x) <- e(x, _)."
        for _ in range(2):
            workspace.install(rules, results=results, replace=True)
        workspace.install(rules, "delta", results=results, replace=True)
        assert set(workspace["n"]) == {(1, 2, 2), (2, 1, 1), (3, 4, 4), (4, 3, 3)}


def test_figures_of_a_commit_know_heads_that_are_not_shown() -> None:
    workspace = small(Workspace())
    with whatever_it_costs():
        workspace.install(OTHER, results="q")
    with workspace.transaction() as transaction:
        transaction.insert("u", [(3,)])
    assert list(transaction.changes) == ["q"]
    assert (transaction.stats["h"].head_changes, transaction.stats["q"].head_changes) == (1, 1)
    assert transaction.stats.rules["h#keys1"].head_changes == 1
    assert "h#keys1" not in workspace.stats.rows and workspace.stats.rows["h"] == 2


@pytest.mark.compiled
def test_what_was_empty_is_chosen_anew() -> None:
    workspace = Workspace()
    for name, columns in (("line", ["o", "s", "late"]), ("supplier", ["s", "nation"])):
        workspace.load(name, pa.table({one: pa.array([], pa.int64()) for one in columns}))
    workspace.install(WAITING, results="q")
    text = str(workspace.explain_maintenance("q"))
    assert "; line was empty when it was installed: install(..., replace=True) chooses anew" in text
    assert "#keys" not in workspace.explain_maintenance()
    full = orders(Workspace())
    with workspace.transaction() as transaction:
        for name in ("line", "supplier"):
            transaction.insert(name, full[name].to_arrow())
    assert "#keys" not in workspace.explain_maintenance()
    rows = set(workspace["q"])
    workspace.install(WAITING, results="q", replace=True)
    assert "other: evaluated for the keys (o, s) that q reads only, about" in workspace.explain_maintenance(
        "q"
    )
    assert set(workspace["q"]) == rows


def test_explain_says_why_heads_are_whole() -> None:
    workspace = small(Workspace())
    workspace.install(f"{OTHER} p(x) <- r(x).", results=["q", "p"])
    text = workspace.explain_maintenance("p")
    assert "  for it      r: evaluated whole: not all that reads it binds columns it could be kept by" in text
    assert "  for it      h: evaluated whole" in text
    assert "  kept for    q, p: evaluated whole" in workspace.explain_maintenance("h")


# -- in a folder ----------------------------------------------------------------------------------


@pytest.mark.compiled
def test_a_folder_has_the_same_choice_whatever_it_grew_to(tmp_path: Path) -> None:
    with orders(Workspace.open(tmp_path / "ws")) as workspace:
        workspace.install(WAITING, results="q")
        said = workspace.explain_maintenance("q").splitlines()[1:3]
        assert "about" in said[0]
        with workspace.transaction() as transaction:
            transaction.erase("line", workspace["line"].to_arrow().slice(0, 90_000))
        since = workspace.version
        with workspace.transaction() as transaction:
            transaction.erase("supplier", [(3, 3)])
    without_image(tmp_path / "ws")
    with Workspace.open(tmp_path / "ws") as workspace:
        assert workspace.explain_maintenance("q").splitlines()[1:3] == said
        rows = set(workspace["q"])
        gone = workspace.changes_since(since, "q").table.to_pylist()
        assert [(row["s"], row["weight"]) for row in gone] == [(3, -1)]
        reader = Workspace.open(tmp_path / "ws", read_only=True)
        workspace.save(tmp_path / "copy")
        workspace.install("more(s) <- q(s, _).")
        with pytest.raises(errors.UnknownRelationError, match="'other' is kept for 'q' alone"):
            workspace.install("z(s) <- other(s, _).")
        reader.refresh()
        assert set(reader["q"]) == rows and reader.heads == ("q", "more")
        workspace.uninstall("more", "q")
    without_image(tmp_path / "ws")
    with Workspace.open(tmp_path / "ws") as workspace:
        assert workspace.heads == () and set(workspace.relations) == {"line", "supplier"}
    copy = Workspace.load_from(tmp_path / "copy")
    assert copy.explain_maintenance("q").splitlines()[1:3] == said
    assert set(copy["q"]) == rows


def test_a_folder_has_the_strategy_that_was_wished(tmp_path: Path) -> None:
    rules = "reach(x, y) <- e(x, y). reach(x, z) <- e(x, y), reach(y, z). q(y) <- u(x), reach(x, y)."
    with small(Workspace.open(tmp_path / "ws")) as workspace, whatever_it_costs():
        workspace.install(rules, {"reach": "recompute"}, results="q")
        workspace.set_strategy("reach", "stages")
        kept = [workspace.strategy_of(name) for name in ("reach", "reach#keys1", "reach#keys2")]
        assert kept[0] == "auto" and kept[2] == "stages"
    without_image(tmp_path / "ws")
    with Workspace.open(tmp_path / "ws") as workspace:
        assert [workspace.strategy_of(name) for name in ("reach", "reach#keys1", "reach#keys2")] == kept


def test_a_folder_of_which_results_went(tmp_path: Path) -> None:
    rules = f"{OTHER} p(y) <- q(x), g(x, y). g(x, y) <- e(x, y), e(_, x)."
    for gone in itertools.combinations(("q", "r", "p"), 2):
        if "q" in gone and "p" not in gone:
            continue
        folder = tmp_path / "".join(gone)
        with small(Workspace.open(folder)) as workspace, whatever_it_costs():
            workspace.install(
                rules, {"g": "delta", "h": "trace"}, results=["q", "r", "p"], order={"g": ["x", "y"]}
            )
            (left,) = {"q", "r", "p"} - {*gone} if "p" in gone else {"q"}
            workspace.uninstall(*gone)
            rows, heads = set(workspace[left]), workspace.heads
        without_image(folder)
        with Workspace.open(folder) as workspace:
            assert set(workspace[left]) == rows and workspace.heads == heads
            workspace.verify()
