"""worked examples: words that a visitor types into the site's search lead to the section that answers them.

The index that MkDocs builds has a document for each page and each section; Material's search wants all words
and ranks by the title first, then by how often they stand in the text.  So does this, over the same sections.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from support.paths import ROOT

DOCS = ROOT / "docs"
SITE = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
PAGES = [DOCS / name for name in re.findall(r"([\w/-]+\.md)$", SITE, re.MULTILINE)]
SECTION = re.compile(r"^(?=#+ )", re.MULTILINE)
FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)

LEADS_TO = {
    "upsert": "keys.md#upsert-and-erase-by-key",
    "primary key": "keys.md#tables-with-a-primary-key",
    "left join": "language.md#left-join",
    "networkx": "from-graphs.md#from-networkx-cypher-and-graphframes",
    "cypher": "from-graphs.md#from-networkx-cypher-and-graphframes",
    "pagerank": "from-graphs.md#pagerank-communities-centrality",
    "watermark": "windows.md#the-clock-watermark",
    "dbt": "from-dbt.md#from-dbt",
    "graphframes": "graphframes.md#from-graphframes",
    "kafka": "sources.md#kafka",
    "top-k": "recipes.md#top-k",
}


class Found(NamedTuple):
    """Sorts as the search ranks, the best last."""

    in_title: int
    share_of_title: float
    in_text: int
    place: str


def sections() -> Iterator[tuple[str, str, str]]:
    """Place, title and text; comments of code are no headings."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        plain = FENCE.sub(lambda fence: re.sub(r"^#", " #", fence[0], flags=re.MULTILINE), text)
        for section in filter(str.strip, SECTION.split(plain)):
            title, _, below = section.partition("\n")
            title = title.lstrip("# ")
            anchor = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())
            yield f"{page.relative_to(DOCS)}#{anchor}", title, below


def hits(query: str) -> list[Found]:
    """The sections that have all words of a query, the best first."""
    words = re.findall(r"\w+", query.casefold())
    found = []
    for place, title, text in sections():
        named, below = (re.findall(r"\w+", part.casefold()) for part in (title, text))
        if all(word in named or word in below for word in words):
            in_title = sum(word in named for word in words)
            in_text = sum(below.count(word) for word in words)
            found.append(Found(in_title, in_title / len(named), in_text, place))
    return sorted(found, reverse=True)


@pytest.mark.parametrize("query", LEADS_TO)
def test_a_word_leads_to_its_section(query: str) -> None:
    best = hits(query)[:3]
    assert LEADS_TO[query] in [found.place for found in best], best


def test_what_is_looked_for_by_its_name_is_in_a_title() -> None:
    for query in LEADS_TO:
        assert hits(query)[0].in_title == len(re.findall(r"\w+", query)), query


def test_every_page_of_the_menu_is_searched() -> None:
    assert {place.partition("#")[0] for place, _, _ in sections()} == {
        str(Path(page).relative_to(DOCS)) for page in PAGES
    }
