"""Installing rules again, in place of others, and taking them away: all or nothing."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lftj import errors
from lftj.language.literal_reader import LiteralReader
from lftj.language.reader import Reader
from maintenance import Workspace

TRI = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
EDGES = [(1, 2), (2, 3), (1, 3), (3, 4)]


@pytest.fixture
def ws() -> Workspace:
    ws = Workspace()
    ws.load("edge", EDGES, columns=["a", "b"])
    return ws


def rows(table: Any) -> list[tuple[Any, ...]]:
    return sorted(zip(*table.to_pydict().values(), strict=True))


def insert(ws: Workspace, *edges: tuple[int, int]) -> Any:
    with ws.transaction() as tx:
        tx.insert("edge", list(edges))
    return tx


def test_a_cell_of_a_notebook_runs_twice(ws: Workspace) -> None:
    for _ in range(2):
        ws.install(TRI, replace=True)
        ws.install("n[a] = count() <- tri(a, _, _).", replace=True)
    insert(ws, (2, 4))
    assert rows(ws["n"]) == [(1, 1), (2, 1)]
    ws.verify()


def test_the_same_rules_are_left_as_they_are(ws: Workspace) -> None:
    ws.install(TRI)
    state = ws._state
    ws.install(TRI, replace=True)
    assert ws._state is state
    ws.install(TRI, "recompute", replace=True)
    assert ws.strategy_of("tri") == "recompute"
    ws.install(TRI, "trace", order={"tri": ["c", "b", "a"]}, replace=True)
    assert "key order   c, b, a" in str(ws.explain_maintenance("tri"))
    ws.install(TRI, "trace", sensitivity_bytes={"tri": 10_000}, replace=True)
    assert ws._state.budgets["tri"].limit == 10_000
    ws.install(TRI, "trace", replace=True)
    assert not ws._state.budgets


@pytest.mark.parametrize("strategy", ["trace", "delta", "auto"])
def test_what_is_tested_behind_the_search_is_said(ws: Workspace, strategy: str) -> None:
    ws.load("label", [(1, "a"), (2, "b")], columns=["a", "t"])
    ws.install('early(a) <- label(a, t), t < "b", edge(a, b), starts_with(t, "a"), b < 3.', strategy)
    told = str(ws.explain_maintenance("early")).splitlines()
    assert [line.strip() for line in told if "on the rows" in line] == [
        'on the rows t < "b"',
        'on the rows starts_with(t, "a")',
    ]
    assert rows(ws["early"]) == [(1,)]


def test_installing_again_says_what_is_there(ws: Workspace) -> None:
    ws.install(TRI)
    with pytest.raises(errors.RuleError) as caught:
        ws.install(TRI)
    assert str(caught.value).splitlines()[0] == (
        "'tri' is the head of an installed rule: give this one another name,"
        " or define it anew by install(..., replace=True)"
    )
    with pytest.raises(errors.RuleError, match="'edge' is loaded data: give the head another name"):
        ws.install("edge(a) <- tri(a, _, _).", replace=True)


def test_heads_are_defined_anew_in_one_step(ws: Workspace) -> None:
    heard: list[pa.Table] = []
    ws.install(TRI + " n[a] = count() <- tri(a, _, _).", sensitivity_bytes={"tri": 100_000})
    ws.subscribe("tri", heard.append)
    ws.install("tri(a, c) <- edge(a, b), edge(b, c). n[c] = count() <- tri(_, c).", replace=True)
    assert rows(ws["tri"]) == [(1, 3), (1, 4), (2, 4)]
    assert rows(ws["n"]) == [(3, 1), (4, 2)]
    assert not heard and not ws._state.budgets
    insert(ws, (4, 5))
    (change,) = heard
    assert rows(change) == [(2, 5, 1), (3, 5, 1)] or rows(change) == [(3, 5, 1)]
    ws.verify()
    ws.check_invariants()


def test_heads_that_others_read_stay(ws: Workspace) -> None:
    ws.install(TRI)
    ws.install("n[a] = count() <- tri(a, _, _).")
    state = ws._state
    for change in (
        lambda: ws.install("tri(a) <- edge(a, _).", replace=True),
        lambda: ws.uninstall("tri"),
    ):
        with pytest.raises(
            errors.ChangeError, match="the rules of 'n' read 'tri': uninstall 'n' before it or with it"
        ):
            change()
        assert ws._state is state
    with pytest.raises(errors.UnknownRelationError, match="no head is called 'edge'; heads are tri, n"):
        ws.uninstall("n", "edge")
    assert ws._state is state
    ws.uninstall("tri", "n")
    assert ws.heads == () and list(ws.relations) == ["edge"]
    ws.load("edge", [(1, 2)], columns=["a", "b"])


def test_a_wrong_program_replaces_nothing(ws: Workspace) -> None:
    ws.install(TRI)
    state = ws._state
    with pytest.raises(errors.FunctionalConflictError):
        ws.install("tri[a] = b <- edge(a, b).", replace=True)
    with pytest.raises(errors.UnknownRelationError):
        ws.install("tri(a) <- egde(a, _).", replace=True)
    with pytest.raises(errors.StrategyError):
        ws.install("tri(a) <- edge(a, _).", "swift", replace=True)
    assert ws._state is state
    insert(ws, (2, 4))
    ws.verify()


SHARED = "n[a] = count(), low[a] = min(b), low2[a, b] = min(c), s[a] = sum(b) <- edge(a, b), edge(b, c)."


@pytest.mark.parametrize("gone", [("n",), ("low",), ("low2", "n"), ("s", "low")])
def test_heads_that_share_searches_go_on_without_each_other(ws: Workspace, gone: tuple[str, ...]) -> None:
    """The searches stay with those that are left, who pay for them; trees that nobody reads go."""
    ws.install(SHARED)
    (intermediate,) = {source._intermediate for head in ws._heads.values() for source in head.sources}  # type: ignore[attr-defined]
    bytes_before = ws.sensitivity_bytes
    ws.uninstall(*gone)
    assert ws.sensitivity_bytes == bytes_before
    assert len(intermediate.sharers) == 4 - len(gone)
    readers = {sharer.head.relation for chain in intermediate._scans._chains for sharer in chain.sharers}
    assert readers == {"low", "low2"} - set(gone)
    for edges in ([(2, 4), (4, 1)], [(4, 4)]):
        insert(ws, *edges)
        ws.verify()
        ws.check_invariants()
    assert "tri" not in str(ws.explain_maintenance())


def test_heads_with_several_aggregates_go_whole(ws: Workspace) -> None:
    ws.install("stats(a, count(), max(b)) <- edge(a, b). other(a) <- stats(a, _, _).")
    with pytest.raises(errors.ChangeError, match="the rules of 'other' read 'stats'"):
        ws.uninstall("stats")
    ws.uninstall("other", "stats")
    assert not ws._heads and set(ws._state.versions) == {"edge"}


def test_subscribers_go_with_their_head(ws: Workspace) -> None:
    heard: list[pa.Table] = []
    ws.install(TRI)
    ws.subscribe("tri", heard.append)
    ws.uninstall("tri")
    ws.install(TRI)
    insert(ws, (2, 4))
    assert not heard


def test_one_head_of_a_rule_with_several(ws: Workspace) -> None:
    ws.install("a(x), b(x) <- edge(x, _).")
    ws.uninstall("a")
    assert ws.heads == ("b",)
    assert "a(" not in str(ws.explain_maintenance())
    insert(ws, (9, 1))
    ws.verify()
    assert (9,) in rows(ws["b"])


@pytest.mark.parametrize("program", [TRI, "all(count(), max(a)) <- edge(a, _). top(n) <- all(n, _)."])
def test_the_strategy_of_a_head_is_changed(ws: Workspace, program: str) -> None:
    """Tuples and subscribers stay, heads above go on; what is shared stays with the others."""
    ws.install(program, "trace")
    name = ws.heads[0]
    heard: list[pa.Table] = []
    ws.subscribe(name, heard.append)
    before = set(ws[name])
    for number, strategy in enumerate(("delta", "recompute", "auto", "trace")):
        ws.set_strategy(name, strategy)
        assert ws.strategy_of(name) == strategy and set(ws[name]) == before and not heard[number:]
        with ws.transaction() as tx:
            tx.insert("edge", [(70 + number, 71), (71, 72), (70 + number, 72)])
        assert tx.stats[name].strategy == strategy and len(heard) == number + 1
        before = set(ws[name])
        ws.verify()
        ws.check_invariants()
    with pytest.raises(errors.StrategyError, match="'fast'"):
        ws.set_strategy(name, "fast")
    with pytest.raises(errors.UnknownRelationError, match="tir"):
        ws.set_strategy("tir", "trace")
    assert ws.strategy_of(name) == "trace"


def test_the_text_of_a_view_is_read_once(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counting(self: Reader, tree: Any) -> Any:
        read.append(self._text)
        return LiteralReader.read(self, tree)

    monkeypatch.setattr(Reader, "read", counting)
    ws.create_view("kept", "select a, count(*) as n from edge where b > 1 group by a")
    assert len(read) == 1
