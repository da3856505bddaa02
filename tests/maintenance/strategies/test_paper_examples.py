"""worked examples: sensitivity records and what they match, as ILFTJ section 4 has them (arXiv 1303.5313).

The example of a leapfrog join in section 4.1 has two unary predicates, whose branches would name their
regions by themselves.  Here they stand below a variable y that neither of them holds.  Its steps are those of
the text: A seeks 6 and moves from 4 to 6; B seeks 4, and would land on 5 if 5 came, but not on 3.  The tree
surgeries of section 4.2.1 are in the tests of :mod:`lftj.storage.index_version`.
"""

from __future__ import annotations

import pytest

from indices.keys import KEY_MAX, KEY_MIN
from maintenance import Workspace
from maintenance.stats import RuleStats
from maintenance.strategies.trace.body_trace import BodyTrace

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
    pytest.mark.kernel,
]

RULE = "J(y, x) <- Y(y), A(x), B(x)."
ORDER = ["y", "x"]


def example() -> Workspace:
    workspace = Workspace(record_gap=0)
    for name, keys in {"Y": [1], "A": [0, 4, 6], "B": [1, 6]}.items():
        workspace.load(name, [(key,) for key in keys], columns=["k"])
    workspace.install(RULE, "trace", order={"J": ORDER})
    return workspace


def recorded(workspace: Workspace) -> dict[str, list[tuple[int, int]]]:
    """Per atom its intervals; contexts are left out."""
    (trace,) = workspace._heads["J"].searches
    assert isinstance(trace, BodyTrace)
    found = {}
    for participant, index in zip(trace.plan.streams, trace.sensitivity, strict=True):
        _, lo, hi, _ = index.records()
        found[participant.label] = sorted(zip(lo.tolist(), hi.tolist(), strict=True))
    return found


def insert(workspace: Workspace, relation: str, key: int) -> RuleStats:
    with workspace.transaction() as transaction:
        transaction.insert(relation, [(key,)])
    workspace.verify()
    return transaction.stats["J"]


def test_the_trace_of_section_4_1() -> None:
    table = example().snapshot().trace(RULE.replace("J", "j"), order=ORDER).to_pylist()
    steps = [(row["atom"][0], row["operation"], row["from"], row["to"]) for row in table if row["depth"] == 2]
    assert steps == [
        ("A", "open", None, "0"),
        ("B", "open", None, "1"),
        ("A", "seek", "1", "4"),
        ("B", "seek", "4", "6"),
        ("A", "seek", "6", "6"),
        ("B", "next", "6", None),
    ]


def test_the_sensitivities_of_section_4_1() -> None:
    """Rule 3: open, [-inf, first key]; rule 1: seek, [what is sought, landing]; rule 2: next.

    Intervals that touch are one record: A's [-inf, 0] and [1, 4], B's [4, 6] and [7, +inf].
    """
    assert recorded(example()) == {
        "A(x)": [(KEY_MIN, 4), (6, 6)],
        "B(x)": [(KEY_MIN, 1), (4, KEY_MAX)],
    }


@pytest.mark.parametrize(("relation", "key", "matches"), [("B", 5, 1), ("B", 3, 0), ("A", 5, 0), ("A", 3, 1)])
def test_the_changes_of_section_4_1(relation: str, key: int, matches: int) -> None:
    """B is sensitive at 5, for seek(4) would land there, and not at 3; A is at 3 and not at 5."""
    stats = insert(example(), relation, key)
    assert (stats.matches, stats.regions, stats.head_changes) == (matches, matches, 0)


def test_intervals_that_were_examined_are_removed_and_new_ones_inserted() -> None:
    """Section 4.1.1.  When B(5) comes, A lacks 5 and records it, and B's interval is cut; so the other way.

    Until then B's going and coming matches nothing more.
    """
    workspace = example()
    cut = [(KEY_MIN, 1), (4, 4), (6, KEY_MAX)]
    for matches in (1, 0, 0):
        stats = insert(workspace, "B", 5)
        assert (stats.matches, stats.dropped_records) == (matches, 0)
        with workspace.transaction() as transaction:
            transaction.erase("B", [(5,)])
        assert recorded(workspace) == {"A(x)": [(KEY_MIN, 4), (5, 5), (6, 6)], "B(x)": cut}
    stats = insert(workspace, "A", 5)
    assert (stats.matches, stats.dropped_records) == (1, 1)
    assert recorded(workspace) == {"A(x)": [(KEY_MIN, 4), (6, 6)], "B(x)": sorted([*cut, (5, 5)])}


def test_no_index_where_the_arguments_begin_the_key_order() -> None:
    """Section 4.2: with the order a, b, c the second atom has two sensitivity indices, the third has one."""
    workspace = Workspace()
    edges = [(1, 2), (2, 3), (1, 3)]
    for name in "RST":
        workspace.load(name, edges, columns=["x", "y"])
    workspace.install("h(a, b, c) <- R(a, b), S(b, c), T(a, c).", "trace", order={"h": ["a", "b", "c"]})
    (trace,) = workspace._heads["h"].searches
    assert isinstance(trace, BodyTrace)
    assert [(its.label, its.level) for its in trace.plan.streams] == [
        ("S(b, c)", 0),
        ("S(b, c)", 1),
        ("T(a, c)", 1),
    ]
