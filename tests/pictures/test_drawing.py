"""The drawings are well-formed, stand alone, and leave their texts apart, on any names and sizes."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from lftj.pictures.drawing import ADVANCE, Drawing, text_width, wrapped
from lftj.pictures.layers import Box, layered
from support.drawings import SVG, outside, overlapping, texts


@given(st.text(max_size=20), st.sampled_from(["start", "middle", "end"]), st.floats(-500, 500))
def test_any_text_is_shown_whole(text: str, anchor: str, x: float) -> None:
    drawing = Drawing()
    drawing.text(x, 7, text, anchor=anchor)  # type: ignore[arg-type]
    document = drawing.svg(text.replace("\x00", "")) if text.isprintable() else drawing.svg("a text")
    ((shown, *_),) = texts(document)
    assert len(shown) == len(text) and not outside(document)
    assert all(a == b or not a.isprintable() for a, b in zip(text, shown, strict=True))


def test_wide_characters_take_two_places() -> None:
    assert text_width("日本", 10) == text_width("abcd", 10) == 4 * ADVANCE * 10


@given(st.text("ab ", max_size=60), st.integers(1, 30))
def test_lines_are_cut_between_words(text: str, places: int) -> None:
    lines = wrapped(text, places * ADVANCE * 10, 10)
    assert " ".join(lines).split() == text.split()
    assert all(len(line) <= places or " " not in line for line in lines)


def test_a_document_stands_alone() -> None:
    drawing = Drawing()
    drawing.line([(0, 0), (10, 10)], arrow=True)
    drawing.curve([(0, 0), (5, 5), (6, 6), (9, 9)], dashed=True)
    drawing.box(0, 0, 5, 5)
    drawing.circle(3, 3, 2)
    drawing.area([(0, 0), (20, 0), (20, 30)], fill="#000000")
    document = drawing.svg("<shapes> & more")
    root = ET.fromstring(document)
    assert root.attrib["viewBox"] == "-16 -16 52 62"  # the area's corners, and the margin
    assert root.findtext(f"{SVG}title") == "<shapes> & more"
    links = [value for element in root.iter() for value in element.attrib.values() if "url(" in value]
    (name,) = {link.removeprefix("url(#").removesuffix(")") for link in links}
    assert [marker.attrib["id"] for marker in root.iter(f"{SVG}marker")] == [name]
    assert "http" not in document.replace('xmlns="http://www.w3.org/2000/svg"', "")


@st.composite
def strata(draw: st.DrawFn) -> Sequence[Box]:
    """Boxes that read those of lower layers, and some of their own."""
    boxes: list[Box] = []
    for layer in range(draw(st.integers(1, 4))):
        below = [box.name for box in boxes]
        names = [f"r{layer}_{number}" for number in range(draw(st.integers(1, 4)))]
        for name in names:
            reads = draw(st.lists(st.sampled_from(below), unique=True)) if below else []
            negated = [f"!{read}" for read in reads if draw(st.booleans())]
            own = [other for other in names if draw(st.integers(0, 4)) == 0] if layer else []
            boxes.append(Box(name, layer, (*reads, *negated, *own), "auto, 1,000 rows", bool(own)))
    return boxes


def crossings_of_boxes(document: str) -> list[str]:
    """Vertical pieces of arrows, those beside boxes, that go through one."""
    root = ET.fromstring(document)
    boxes = [
        tuple(float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        for rect in root.iter(f"{SVG}rect")
        if "rx" in rect.attrib
    ]
    found = []
    for path in root.iter(f"{SVG}path"):
        if "stroke-dasharray" not in path.attrib and path.attrib["fill"] != "none":
            continue
        points = [
            tuple(map(float, p.split(","))) for p in path.attrib["d"].lstrip("M").replace("C", "").split()
        ]
        for (x, y), (to_x, to_y) in itertools.pairwise(points):
            found += [
                path.attrib["d"]
                for left, top, width, height in boxes
                if x == to_x
                and left < x < left + width
                and min(y, to_y) <= top
                and max(y, to_y) >= top + height
            ]
    return found


@given(strata())
def test_layers_leave_boxes_and_texts_apart(boxes: Sequence[Box]) -> None:
    drawing = Drawing()
    layered(boxes, drawing)
    document = drawing.svg("strata")
    assert not overlapping(document) and not outside(document) and not crossings_of_boxes(document)
    root = ET.fromstring(document)
    arrows = [path for path in root.iter(f"{SVG}path") if "marker-end" in path.attrib]
    assert len(arrows) == sum(len(box.reads) for box in boxes)
    dashed = [path for path in arrows if "stroke-dasharray" in path.attrib]
    assert len(dashed) == sum(read.startswith("!") for box in boxes for read in box.reads)
    again = Drawing()
    layered(boxes, again)
    assert again.svg("strata") == document
