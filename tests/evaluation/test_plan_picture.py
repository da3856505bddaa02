"""The picture of a plan says what its text says: variables, atoms, squares, measured operations."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

import lftj
from lftj.pictures.drawing import ORANGE
from support.drawings import SVG


@pytest.fixture(scope="module")
def db() -> lftj.Database:
    made = lftj.Database()
    made.load("edge", [(i, j) for i in range(9) for j in range(i) if i % (j + 1) < 3], columns=["src", "dst"])
    made.load("red", [(3,), (4,)], columns=["x"])
    return made


def shown(document: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(document).iter(f"{SVG}text")]


def squares(document: str) -> list[bool]:
    """Of each square whether it is negated."""
    rects = [r for r in ET.fromstring(document).iter(f"{SVG}rect") if r.attrib["width"] == "18"]
    return [rect.attrib["stroke"] == ORANGE for rect in rects]


def test_squares_variables_and_measured_operations(db: lftj.Database) -> None:
    rule = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c), !red(b)."
    explained = db.explain(rule, analyze=True)
    (body,) = explained.bodies
    document = explained.svg()
    said = shown(document)
    assert said[0] == rule and [text for text in said if text in "abc"] == list(body.order)
    for depth in body.depths:
        assert depth.opens is not None
        assert f"{depth.opens:,} open, {depth.nexts:,} next, {depth.seeks:,} seek" in " ".join(said)
    assert {index.partition("  by ")[0] for index in body.indexes} <= set(said)
    assert sorted(squares(document)) == [False] * sum(len(d.participants) for d in body.depths) + [True]
    assert "stratum 0" not in said and f"{body.rows:,} rows, {body.operations:,} operations" in said


def test_estimates_alone_and_strata_above(db: lftj.Database) -> None:
    explained = db.explain("two(a, c) <- edge(a, b), edge(b, c). n[a] = count() <- two(a, _).")
    said = shown(explained.svg())
    assert [text for text in said if text.startswith("stratum")] == ["stratum 0", "stratum 1", "stratum 2"]
    assert "measured" not in said and "estimated" in said
    assert explained._repr_svg_() == explained.svg() and explained.svg() in explained._repr_html_()


@pytest.mark.parametrize("rule", ["none(a) <- edge(a, 77).", "many[] = count() <- edge(_, _), red(_)."])
def test_rules_without_variables_to_search_are_drawn_too(db: lftj.Database, rule: str) -> None:
    assert rule in shown(db.explain(rule, analyze=True).svg())
