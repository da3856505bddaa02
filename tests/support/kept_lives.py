"""What is done with a workspace in a folder, step by step, and what must be there after each.

The expectation is worked out here on sets of tuples, without the engine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from maintenance import Workspace

Rows = frozenset[tuple[int, int]]

TRIANGLES = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
TWO = "two(a, c) <- edge(a, b), edge(b, c). loop(a) <- two(a, a)."
PATHS = "path(a, c) <- edge(a, c). path(a, c) <- path(a, b), edge(b, c)."
OUT = "n[a] = count() <- other(a, _)."

EDGES = [(1, 2), (2, 3), (1, 3)]


def with_edges(folder: Path, **options: object) -> Workspace:
    """A new workspace in a folder, with one triangle."""
    workspace = Workspace.open(folder, **options)  # type: ignore[arg-type]
    workspace.load("edge", EDGES, columns=["x", "y"])
    workspace.install(TRIANGLES)
    return workspace


def insert(workspace: Workspace, *rows: tuple[int, int]) -> None:
    with workspace.transaction() as tx:
        tx.insert("edge", list(rows))


def without_image(folder: Path) -> None:
    """Delete the images of a folder."""
    for path in folder.glob("image-*"):
        path.unlink()


def closure(edges: Rows) -> set[tuple[int, int]]:
    """By Warshall."""
    found = set(edges)
    for middle in {b for _, b in edges}:
        found |= {(a, c) for a, b in found if b == middle for other, c in found if other == middle}
    return found


@dataclass(frozen=True)
class Expected:
    """Base relations, and the heads with their strategies."""

    relations: dict[str, Rows] = field(default_factory=dict)
    strategies: dict[str, str] = field(default_factory=dict)

    def head(self, name: str) -> set[tuple[int, ...]]:
        edge = self.relations.get("edge", frozenset())
        two = {(a, c) for a, b in edge for other, c in edge if b == other}
        if name == "tri":
            return {(a, b, c) for a, b in edge for other, c in edge if b == other and (a, c) in edge}
        if name == "n":
            firsts = [a for a, _ in self.relations["other"]]
            return {(a, firsts.count(a)) for a in firsts}
        if name == "path":
            return closure(edge)
        return two if name == "two" else {(a,) for a, c in two if a == c}

    def check(self, workspace: Workspace) -> None:
        """Raise AssertionError if a workspace is not as expected."""
        assert self.is_met_by(workspace)
        for head in self.strategies:
            assert set(workspace[head]) == self.head(head)
        workspace.verify()
        workspace.check_invariants()

    def is_met_by(self, workspace: Workspace) -> bool:
        """Whether relations and heads are those; what heads hold is not looked at."""
        heads = {name: workspace.strategy_of(name) for name in workspace.heads}
        base = {name: frozenset(workspace[name]) for name in workspace.relations if name not in heads}
        return (base, heads) == (self.relations, self.strategies)

    def with_rows(self, name: str, rows: Rows) -> Expected:
        return replace(self, relations={**self.relations, name: rows})


Step = tuple[Callable[[Workspace], object], Expected]


def life(chance: random.Random, length: int = 14) -> Iterator[Step]:
    """Steps, and what must be there after each: loads, rules, strategies, transactions, checkpoints."""
    now = Expected()

    def load(name: str) -> Step:
        rows = frozenset((chance.randrange(6), chance.randrange(6)) for _ in range(8))
        columns = ["x", "y"]
        return (lambda ws: ws.load(name, sorted(rows), columns=columns)), now.with_rows(name, rows)

    def install(text: str, **strategies: str) -> Step:
        following = replace(now, strategies={**now.strategies, **strategies})
        return (lambda ws: ws.install(text, strategies, replace=True)), following

    def change(name: str) -> Step:
        before = now.relations[name]
        came = frozenset((chance.randrange(6), chance.randrange(6)) for _ in range(chance.randrange(1, 4)))
        went = frozenset(chance.sample(sorted(before), min(len(before), chance.randrange(3)))) - came

        def commit(ws: Workspace) -> None:
            with ws.transaction() as tx:
                tx.insert(name, sorted(came))
                tx.erase(name, sorted(went))

        return commit, now.with_rows(name, (before | came) - went)

    def batch() -> Step:
        before = now.relations["edge"]
        row = (chance.randrange(6), chance.randrange(6))
        columns = {"x": [row[0], 7, 7], "y": [row[1], 7, 7], "weight": [1, 1, -1], "txn": [1, 2, 3]}
        return (lambda ws: ws.apply_many({"edge": columns})), now.with_rows(
            "edge", (before | {row}) - {(7, 7)}
        )

    def without(head: str) -> Step:
        left = {name: strategy for name, strategy in now.strategies.items() if name != head}
        return (lambda ws: ws.uninstall(head)), replace(now, strategies=left)

    def strategy(head: str) -> Step:
        first, second = ("stages", "recompute") if head == "path" else ("trace", "delta")
        other = second if now.strategies[head] == first else first
        changed = {**now.strategies, head: other}
        return (lambda ws: ws.set_strategy(head, other)), replace(now, strategies=changed)

    def follow(step: Step) -> Step:
        nonlocal now
        now = step[1]
        return step

    yield follow(load("edge"))
    yield follow(install(TRIANGLES, tri="trace"))
    for _ in range(length):
        steps: list[Callable[[], Step]] = [lambda: change("edge")] * 4 + [batch]
        steps += [lambda: (Workspace.checkpoint, now)] * 2
        steps.append(lambda: install(TWO, two="delta", loop="auto"))
        steps.append(lambda: install(PATHS, path="stages"))
        if "n" not in now.strategies:
            steps.append(lambda: load("other"))
        if "other" in now.relations:
            steps += [lambda: change("other"), lambda: install(OUT, n="trace")]
        steps += [lambda head=head: without(head) for head in now.strategies if head in ("loop", "n", "path")]
        steps += [lambda head=head: strategy(head) for head in now.strategies if head in ("tri", "n", "path")]
        yield follow(chance.choice(steps)())
