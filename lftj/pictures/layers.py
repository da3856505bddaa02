"""`layered`: boxes in layers from top to bottom, with arrows from each box to those that read it.

After Sugiyama: an arrow over several layers goes through a slot of its own in each
layer between, so that it passes beside boxes and never behind one; slots are
ordered by the mean place of what they hang on, a few times down and up.

Cost: rounds times arrows times log of the widest layer.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lftj.pictures.drawing import (
    FAINT,
    INK,
    ORANGE,
    PALE_BLUE,
    PALE_GREEN,
    PAPER,
    Drawing,
    text_width,
)

SMALL = 11.0
HEIGHT = 42.0
BETWEEN = 56.0
APART = 22.0
SWEEPS = 6

Slot = tuple[str, str, int]
"""A box (name, "", layer), or where the arrow from one box to another goes through a layer."""

Link = tuple[str, str, bool]
"""A relation, what reads it, and whether negated."""


@dataclass(frozen=True)
class Box:
    """A relation: its layer, what it reads (negated behind ``!``), and a line about it."""

    name: str
    layer: int
    reads: tuple[str, ...]
    about: str = ""
    recursive: bool = False


def layered(boxes: Sequence[Box], drawing: Drawing) -> None:
    """Draw the boxes, layer 0 on top.  Dashed arrows are negated; those within a layer go below it."""
    of = {box.name: box for box in boxes}
    links = _links(boxes)
    layers = _ordered(_slots(boxes, links), links)
    left = _placed(layers, of)
    top = {layer: layer * (HEIGHT + BETWEEN) for layer in range(len(layers))}
    ports = _ports(boxes, links, left)
    for link, way in links.items():
        _arrow(drawing, link, way, left, ports, top)
    for box in boxes:
        x, y, width = left[box.name, "", box.layer], top[box.layer], _width(box)
        fill = PALE_GREEN if box.recursive else PALE_BLUE if box.reads else PAPER
        drawing.box(x, y, width, HEIGHT, fill=fill, line=INK if box.reads else FAINT)
        drawing.text(x + width / 2, y + (18 if box.about else 26), box.name, anchor="middle", bold=True)
        drawing.text(x + width / 2, y + 34, box.about, anchor="middle", size=SMALL, colour=FAINT)
    for layer, y in top.items():
        drawing.text(-24, y + 26, f"stratum {layer}", colour=FAINT, anchor="end", size=SMALL)


def _links(boxes: Sequence[Box]) -> dict[Link, list[Slot]]:
    """The slots that each arrow goes through, both ends included."""
    layer_of = {box.name: box.layer for box in boxes}
    found = {}
    for box in boxes:
        for read in box.reads:
            name = read.lstrip("!")
            between = [(name, box.name, layer) for layer in range(layer_of[name] + 1, box.layer)]
            way = [(name, "", layer_of[name]), *between, (box.name, "", box.layer)]
            found[name, box.name, read.startswith("!")] = way
    return found


def _slots(boxes: Sequence[Box], links: Mapping[Link, list[Slot]]) -> list[list[Slot]]:
    layers: list[dict[Slot, None]] = [{} for _ in range(1 + max((box.layer for box in boxes), default=-1))]
    for box in boxes:
        layers[box.layer][box.name, "", box.layer] = None
    for way in links.values():
        for slot in way[1:-1]:
            layers[slot[2]][slot] = None
    return [list(layer) for layer in layers]


def _ordered(layers: list[list[Slot]], links: Mapping[Link, list[Slot]]) -> list[list[Slot]]:
    """Each layer by the mean place of its neighbours above, then below, and so on."""
    above: dict[Slot, list[Slot]] = {slot: [] for layer in layers for slot in layer}
    below: dict[Slot, list[Slot]] = {slot: [] for layer in layers for slot in layer}
    for way in links.values():
        for upper, lower in itertools.pairwise(way):
            if upper[2] < lower[2]:
                above[lower].append(upper)
                below[upper].append(lower)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        neighbours = above if down else below
        for at in range(1, len(layers)) if down else reversed(range(len(layers) - 1)):
            others = layers[at - 1 if down else at + 1]
            place = {slot: number / max(1, len(others) - 1) for number, slot in enumerate(others)}
            own = {slot: number / max(1, len(layers[at]) - 1) for number, slot in enumerate(layers[at])}
            mean = {
                slot: sum(place[other] for other in found) / len(found) if found else own[slot]
                for slot, found in ((slot, neighbours[slot]) for slot in layers[at])
            }
            layers[at].sort(key=mean.__getitem__)
    return layers


def _width(box: Box) -> float:
    return max(text_width(box.name), text_width(box.about, SMALL)) + 20


def _placed(layers: Sequence[Sequence[Slot]], of: Mapping[str, Box]) -> dict[Slot, float]:
    """The left end of each slot; layers have one middle."""
    width = {slot: 2.0 if slot[1] else _width(of[slot[0]]) for layer in layers for slot in layer}
    whole = [sum(width[slot] + APART for slot in layer) - APART for layer in layers]
    left = {}
    for layer, own in zip(layers, whole, strict=True):
        x = (max(whole) - own) / 2
        for slot in layer:
            left[slot] = x
            x += width[slot] + APART
    return left


def _ports(
    boxes: Sequence[Box], links: Mapping[Link, list[Slot]], left: Mapping[Slot, float]
) -> dict[tuple[Link, int], float]:
    """Where on its box each arrow begins (0) and ends (-1): side by side, in the order of where they lead."""
    found = {}
    for box in boxes:
        own, width = left[box.name, "", box.layer], _width(box)
        for end, next_to_it in ((0, 1), (-1, -2)):
            here = [link for link, way in links.items() if link[0] != link[1] and way[end][0] == box.name]
            here.sort(key=lambda link: left[links[link][next_to_it]])
            for number, link in enumerate(here, 1):
                found[link, end] = own + width * number / (len(here) + 1)
    return found


def _arrow(
    drawing: Drawing,
    link: Link,
    way: Sequence[Slot],
    left: Mapping[Slot, float],
    ports: Mapping[tuple[Link, int], float],
    top: Mapping[int, float],
) -> None:
    name, reader, negated = link
    lower_end = top[way[0][2]] + HEIGHT
    if name == reader:
        x = left[way[0]]
        loop = [
            (x + 6, lower_end),
            (x + 6, lower_end + 24),
            (x + 22, lower_end + 24),
            (x + 22, lower_end + 1),
        ]
        drawing.curve(loop, colour=FAINT, arrow=True)
        return
    start, end = ports[link, 0], ports[link, -1]
    if way[0][2] == way[-1][2]:  # of one component
        arc = [(start, lower_end), (start, lower_end + 36), (end, lower_end + 36), (end, lower_end + 1)]
        drawing.curve(arc, colour=FAINT, arrow=True)
        return
    points = [(start, lower_end)]
    for slot in way[1:]:
        x, y = end if slot is way[-1] else left[slot] + 1, top[slot[2]]
        half = (points[-1][1] + y) / 2
        points += [(points[-1][0], half), (x, half), (x, y)]
        if slot is not way[-1]:
            points += [(x, y), (x, y + HEIGHT), (x, y + HEIGHT)]
    drawing.curve(points, colour=ORANGE if negated else FAINT, dashed=negated, arrow=True)
