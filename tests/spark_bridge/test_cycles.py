"""oracle: which bodies have a cycle, beside the definition: an acyclic one has a join tree."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from random import Random

import pytest

pytest.importorskip("pyspark")

from spark_bridge.acyclic.cycles import is_acyclic


def has_join_tree(atoms: Sequence[frozenset[str]]) -> bool:
    """Whether in some tree over the atoms those that have a variable are connected, for each variable."""
    places = range(len(atoms))
    for tree in itertools.combinations(itertools.combinations(places, 2), max(len(atoms) - 1, 0)):
        if _connected(set(places), tree) and all(
            _connected({place for place in places if name in atoms[place]}, tree)
            for name in frozenset().union(*atoms)
        ):
            return True
    return False


def _connected(nodes: set[int], tree: Sequence[tuple[int, int]]) -> bool:
    reached, todo = set(), list(nodes)[:1]
    while todo:
        node = todo.pop()
        reached.add(node)
        ends = [end for edge in tree if node in edge for end in edge if set(edge) <= nodes]
        todo += [end for end in ends if end not in reached]
    return reached == nodes


@pytest.mark.parametrize("seed", range(4))
def test_oracle_join_trees(seed: int) -> None:
    random = Random(seed)
    seen = set()
    for _ in range(150):
        variables = "abcde"[: random.randint(2, 5)]
        atoms = [
            frozenset(random.sample(variables, random.randint(0, min(3, len(variables)))))
            for _ in range(random.randint(1, 5))
        ]
        seen.add(is_acyclic(atoms))
        assert is_acyclic(atoms) == has_join_tree(atoms), atoms
    assert seen == {True, False}
