"""The pictures of the documentation are those that the engine's traces and plans give now."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from bench.pictures.bars import CHARTS, PAGE, table_rows
from bench.pictures.gallery import PICTURES
from bench.pictures.lending import DATA, committed, intervals, steps, workspace
from support.paths import ROOT

FOLDER = ROOT / "docs" / "pictures"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_not_stale(name: str) -> None:
    shown = (FOLDER / name).read_text(encoding="utf-8")
    assert shown == PICTURES[name](), "draw it anew: python -m bench.pictures"


def test_every_picture_is_drawn_and_shown() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(PICTURES)
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    shown = {
        name for page in pages for name in re.findall(r"pictures/([\w-]+\.svg)", page.read_text("utf-8"))
    }
    assert shown == set(PICTURES)


def test_figures_in_the_words_for_a_picture_are_in_it() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for words, name in re.findall(r"!\[([^\]]*)\]\(\S*pictures/([\w-]+\.svg)", page.read_text("utf-8")):
            drawn = (FOLDER / name).read_text(encoding="utf-8")
            assert [figure for figure in re.findall(r"\d+(?:,\d{3})+", words) if figure not in drawn] == [], (
                page
            )


@pytest.mark.parametrize("name", CHARTS)
def test_bars_are_as_long_as_the_figures_say_and_fit_a_phone(name: str) -> None:
    """390 pixels, less margins, show letters of 12 at 10 or more."""
    chart = (FOLDER / name).read_text(encoding="utf-8")
    assert float(re.findall(r'width="([\d.]+)"', chart)[0]) <= 432
    bars = list(CHARTS[name].bars(table_rows(CHARTS[name].header)))
    lengths = [float(text) for text in re.findall(r'<rect [^>]*width="([\d.]+)" height="12"', chart)]
    assert len(lengths) == len(bars) > 5
    by_length = sorted(zip(lengths, (bar.value for bar in bars), strict=True))
    assert all(one[1] <= two[1] or two[0] - one[0] < 0.11 for one, two in pairwise(by_length))
    page = PAGE.read_text(encoding="utf-8").replace("`", "")
    assert all(bar.shown in page for bar in bars) and f"]({FOLDER.name}/{name})" in page


def test_the_intervals_drawn_are_what_the_steps_passed_over() -> None:
    """By the paper's three rules (4.1), and no key more."""
    made = workspace()
    for atom, whose in (("wants(a, c)", 1), ("owns(b, c)", 2)):
        passed: set[int] = set()
        for step in steps(made):
            if step.binding == "a=1, b=2" and step.atom == atom:
                low = {"open": -1, "next": (step.start or 0) + 1, "seek": step.start or 0}[step.operation]
                passed |= set(range(low, 25 if step.to is None else step.to + 1))
        drawn = intervals(made, atom, 1, 2)
        assert {key for key in range(-1, 25) if any(key in one for one in drawn)} == passed
        assert whose in {owner for owner, _ in DATA[atom.partition("(")[0]]}


def test_what_the_pages_say_of_the_changes() -> None:
    missed, hit = committed("wants", (1, 10)), committed("owns", (2, 12))
    assert (missed.stats.matches, missed.stats.regions, missed.changes) == (0, 0, [])
    assert (hit.stats.matches, hit.stats.regions) == (1, 1)
    assert hit.changes == [{"a": 1, "b": 2, "c": 12, "weight": 1}]
