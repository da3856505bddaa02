"""laws: every document that is named is there, and so is every section of it that is cited.

Code and pages name a document by its path from the root, as ``docs/maintenance.md``, pages also by the path
from where they stand.  A section is cited behind the name: "section 4", "sections 4 and 5", "section 5.5" for
a heading of that number or the fifth point of a list in section 5; or by a phrase of the page in quotation
marks.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.paths import ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PACKAGES = ("lftj", "indices", "maintenance", "spark_bridge", "bench", "tests")
CODE = [
    *(ROOT / name for name in ("Makefile", "pyproject.toml", "mkdocs.yml")),
    *(path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))),
]

ELSEWHERE = {
    "ablation.md": "written by bench.ablation",
    "sources/load.md": "written by bench.sources --load",
    "report.md": "written by bench.trace_distance and others",
    "results.md": "written by benchmarks, each into a folder of its own",
    "tpch.md": "written by bench.tpch",
}
"""Names of documents that need not be in the repository: other projects' ones, and files that are made."""

NAME = r"(?<![\w/.])(?:[\w.-]+/)*[\w-]+\.md\b"
NUMBER = r"\d+(?:\.\d+)*"
NAMED = re.compile(NAME)
CITED = re.compile(rf"({NAME}) sections? ({NUMBER}(?:(?:, | and | to ){NUMBER})*)")
QUOTED = re.compile(rf'({NAME})(?: sections? {NUMBER})?,? "([^"]+)"')
BARE = re.compile(rf"{NAME} {NUMBER}")
URL = re.compile(r"\w+://[^\s)\"'`]+")
COLUMN = 88
"""So many characters of code stand beside the site's menus, at 1,280 pixels; docs/ruff.toml has it, too."""

LINE_END = re.compile(r"\s*\n\s*(?:# )?")

HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)")
MODULE = re.compile(r"`((?:\w+/)+\w+\.py)`")


@functools.cache
def text_of(path: Path) -> str:
    """In one line, for a name and its section may stand on two; nothing where no document is named."""
    text = path.read_text(encoding="utf-8")
    return LINE_END.sub(" ", URL.sub("", text)) if ".md" in text else ""


def document(name: str, source: Path) -> Path | None:
    """The one that a file calls so, if it is there."""
    above = [ROOT, source.parent]
    if source.name == "mkdocs.yml" or source.is_relative_to(ROOT / "tests"):
        above.append(ROOT / "docs")  # the site's pages, by their names there
    if source.is_relative_to(ROOT / "bench"):
        above.append(ROOT / "bench" / "results")
    return next((folder / name for folder in above if (folder / name).exists()), None)


def missing_documents(text: str, source: Path) -> list[str]:
    return [name for name in NAMED.findall(text) if name not in ELSEWHERE and not document(name, source)]


def has_section(page: str, number: str) -> bool:
    """Whether a heading has the number, or a list in the section above it such a point."""
    if re.search(rf"^#+ {re.escape(number)}\.? ", page, re.MULTILINE):
        return True
    above, _, point = number.rpartition(".")
    section = re.search(rf"^#+ {re.escape(above)}\.? .*?(?=^#|\Z)", page, re.MULTILINE | re.DOTALL)
    return bool(above and section and re.search(rf"^{point}\. ", section[0], re.MULTILINE))


def missing_sections(text: str, source: Path) -> Iterator[tuple[str, str]]:
    """Citations that lead nowhere: the document, and what it does not have."""
    for name, numbers in CITED.findall(text):
        page = document(name, source)
        for number in re.findall(NUMBER, numbers):
            if page and not has_section(page.read_text(encoding="utf-8"), number):
                yield name, number
    for name, phrase in QUOTED.findall(text):
        page = document(name, source)
        if page and phrase.casefold() not in page.read_text(encoding="utf-8").casefold():
            yield name, phrase
    yield from ((name, "is cited without 'section'") for name in BARE.findall(text))


@pytest.mark.parametrize("sources", [CODE, PAGES], ids=["code", "pages"])
def test_every_document_that_is_named_is_there(sources: list[Path]) -> None:
    missing = {str(path.relative_to(ROOT)): missing_documents(text_of(path), path) for path in sources}
    assert {path: names for path, names in missing.items() if names} == {}


def test_every_section_that_code_cites_is_there() -> None:
    missing = {str(path.relative_to(ROOT)): list(missing_sections(text_of(path), path)) for path in CODE}
    assert {path: sections for path, sections in missing.items() if sections} == {}


def test_what_is_not_there_is_found_out() -> None:
    """By these tests; the names are put together, or they would be found in here."""
    source, page = ROOT / "lftj" / "errors.py", "docs/design/engine.md"
    assert missing_documents(f"see docs/nothing{page[-3:]}, and {page}", source) == [
        "docs/nothing" + page[-3:]
    ]
    assert missing_documents(f"see nothing{page[-3:]}", PAGES[-1]) == ["nothing" + page[-3:]]
    assert list(missing_sections(f"{page} sections 4 and 5.5; {page} section 1", source)) == []
    assert list(missing_sections(f"{page} sections 4, 5.9 and 77", source)) == [(page, "5.9"), (page, "77")]
    assert list(missing_sections(f'{page} section 4, "no such words"', source)) == [(page, "no such words")]
    assert [name for name, _ in missing_sections(f"{page} 4", source)] == [f"{page} 4"]


def test_names_that_need_not_be_there_are_in_use() -> None:
    named = {name for path in CODE if path != Path(__file__) for name in NAMED.findall(text_of(path))}
    assert named >= ELSEWHERE.keys()


def anchors_of(page: Path) -> set[str]:
    """What the site makes of headings."""
    text = page.read_text(encoding="utf-8")
    titles = [re.sub(r"[^\w\s-]", "", title).strip().lower() for title in HEADING.findall(text)]
    return {re.sub(r"[-\s]+", "-", title) for title in titles}


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
            there = page.parent / target if target else page
            assert there.exists(), f"{page.name} links to {target}"
            if anchor and there.name != "reference.md":
                assert anchor in anchors_of(there), f"{page.name} links to {target}#{anchor}"


def test_every_module_that_a_page_names_is_there() -> None:
    named = {(page.name, path) for page in PAGES for path in MODULE.findall(page.read_text(encoding="utf-8"))}
    assert [(page, path) for page, path in sorted(named) if not (ROOT / path).exists()] == []


def test_the_site_has_every_page() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [page.relative_to(ROOT / "docs") for page in PAGES if page.is_relative_to(ROOT / "docs")]
    assert [str(page) for page in pages if f" {page}\n" not in navigation] == []


def test_code_fits_its_column() -> None:
    """But for what commands print, which is as it is; text of doctests may be wrapped."""
    wide = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        language = None
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
            fence = re.match(r" *```(\w*)", line)
            if fence:
                language = fence[1] if language is None else None
            elif language is not None and len(line) > COLUMN:
                printed = language == "console" and not line.startswith("$ ")
                wide += [] if printed else [f"{page.name}:{number}: {line}"]
    assert wide == []
