"""What an SVG drawing shows, read from the document."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET

from lftj.pictures.drawing import text_width

SVG = "{http://www.w3.org/2000/svg}"


def texts(document: str) -> list[tuple[str, float, float, float, float]]:
    """Each text with the rectangle that it takes: left, top, right, bottom."""
    found = []
    for element in ET.fromstring(document).iter(f"{SVG}text"):
        text, size = element.text or "", float(element.attrib["font-size"])
        width = text_width(text, size)
        left = float(element.attrib["x"])
        left -= {"start": 0.0, "middle": width / 2, "end": width}[element.attrib["text-anchor"]]
        base = float(element.attrib["y"])
        found.append((text, left, base - 0.75 * size, left + width, base))
    return found


def overlapping(document: str) -> list[tuple[str, str]]:
    return [
        (one[0], other[0])
        for one, other in itertools.combinations(texts(document), 2)
        if one[0].strip() and other[0].strip()
        if one[1] < other[3] and other[1] < one[3] and one[2] < other[4] and other[2] < one[4]
    ]


def outside(document: str) -> list[str]:
    """Texts that the sheet cuts off."""
    left, top, width, height = map(float, ET.fromstring(document).attrib["viewBox"].split())
    return [
        text
        for text, *(x, y, right, bottom) in texts(document)
        if not (left <= x and right <= left + width and top <= y and bottom <= top + height)
    ]
