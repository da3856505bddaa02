"""laws: the first screens of the site and of README say one thing, and pages what was measured."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest

import lftj
from support.paths import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
START = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").partition("\n## ")[0]
SITE = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
CLAIM = re.compile(r"^\*\*One edge.*?measures it", re.MULTILINE | re.DOTALL)
FIGURE = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?: m?s\b)?")
TAB = re.compile(r'^=== "(\w+)"\n\n((?:    .*\n|\n)+)', re.MULTILINE)
DOOR = re.compile(r"^- (?:\*\*)?(\w[\w ]*?)(?:\*\*)?: \[", re.MULTILINE)


def test_the_claim_is_that_of_the_performance_page() -> None:
    claims = [CLAIM.findall(page) for page in (README, START)]
    assert claims[0] == claims[1] and len(claims[0]) == 1
    figures = FIGURE.findall(claims[0][0])
    measured = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert len(figures) == 5 and [figure for figure in figures if figure not in measured] == []
    assert "`make bench`" in claims[0][0]


def test_the_example_is_short_and_once_in_each_language() -> None:
    tabs = dict(TAB.findall(START))
    lines = {name: [line for line in text.splitlines() if line.strip()] for name, text in tabs.items()}
    assert list(lines) == ["SQL", "Rule"] and all(len(text) <= 10 for text in lines.values())
    same = [sql == rule for sql, rule in zip(lines["SQL"], lines["Rule"], strict=True)]
    assert same.count(False) == 2


def test_the_four_doors_are_on_both() -> None:
    doors = ["SQL and dbt", "Graphs", "Streams", "Research"]
    assert DOOR.findall(START) == doors and DOOR.findall(README)[:4] == doors


def test_version_and_licence_are_those_of_the_package() -> None:
    assert f"Version {lftj.__version__}" in START and "licence Apache-2.0" in START
    assert f"copyright: lftj {lftj.__version__}, licence Apache-2.0\n" in SITE


def test_the_logo_is_a_small_drawing() -> None:
    logo = ROOT / "docs" / "style" / "logo.svg"
    assert SITE.count("style/logo.svg") == 2 and logo.stat().st_size < 1000
    assert ElementTree.parse(logo).getroot().tag.endswith("svg")


def test_what_a_transaction_takes_is_what_was_measured() -> None:
    """The page on maintenance has milliseconds, that on performance a median of one and changes a second."""
    page = (ROOT / "docs" / "maintenance.md").read_text(encoding="utf-8")
    measured = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^\| ([\d,]+) change[^|]*\| ([\d.]+) ms \|", page, re.MULTILINE))
    median = re.search(r"^\| the same under `auto` .*? \| ([\d.]+), ", measured, re.MULTILINE)
    assert median and float(shown.pop("1")) == pytest.approx(float(median[1]) / 1000)
    rates = measured.partition("| triangles RMAT 17/8, 1 |")[2].partition("| triangles RMAT 14/8")[0]
    for changes, took in shown.items():
        rate = re.search(rf"^\| {changes} \| ([\d,]+) ", rates, re.MULTILINE)
        a_second, of_one = (int(text.replace(",", "")) for text in (rate[1] if rate else "0", changes))
        assert float(took) == pytest.approx(1000 * of_one / a_second, rel=0.005)
    assert shown.keys() == {"100", "10,000"}


def test_what_stands_beside_other_engines_was_measured() -> None:
    """Every time and rate of that page; and each engine has what is better on either side."""
    page = (ROOT / "docs" / "beside-others.md").read_text(encoding="utf-8")
    measured = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    named, *engines = page.partition("## Engine by engine")[2].split("\n### ")
    assert len(engines) == 9 and not FIGURE.findall(named)
    for engine in engines:
        assert engine.count("**Better there:**") == engine.count("**Better here:**") == 1, engine
        assert "](https://" in engine, engine
        figures = [text for text in FIGURE.findall(re.sub(r"\]\([^)]*\)", "", engine)) if len(text) > 2]
        assert [text for text in figures if text not in measured] == [], engine
