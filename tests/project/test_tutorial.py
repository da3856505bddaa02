"""The tutorial's cells are run, and give what the page shows.

Times are those of the machine that ran them, and are not compared; of cells with ``measured`` in their
metadata no more is than the kinds of their outputs.
"""

from __future__ import annotations

import copy
import re
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from support.paths import ROOT

PAGE = ROOT / "docs" / "tutorial.ipynb"
ANEW = f"run it anew: jupyter execute --inplace {PAGE.relative_to(ROOT)}"
SECONDS = 1800
"""For one cell: on a loaded machine one that compiles kernels takes minutes."""

TIME = re.compile(r"\bin \d+\.\d+ s\b")


def shown(cell: Any) -> list[dict[str, str]]:
    """The outputs of a cell, each by its kinds; what goes to stderr is for whoever runs it.

    What is printed comes in as many pieces as the kernel was scheduled to send: they count as one.
    """
    found: list[dict[str, str]] = []
    for output in cell["outputs"]:
        if output.get("name") == "stderr":
            continue
        if output["output_type"] != "stream":
            found.append(dict(output["data"]))
        elif found and "stdout" in found[-1]:
            found[-1]["stdout"] += output["text"]
        else:
            found.append({"stdout": output["text"]})
    return [{kind: TIME.sub("in a time", text) for kind, text in output.items()} for output in found]


def test_what_is_printed_in_pieces_counts_as_one() -> None:
    def pieces(*texts: str) -> dict[str, Any]:
        return {"outputs": [{"output_type": "stream", "name": "stdout", "text": text} for text in texts]}

    whole = pieces("3 triangles in 0.12 s\n")
    assert shown(whole) == shown(pieces("3 triangles in 0.1", "5 s", "\n"))
    assert shown(whole) != shown(pieces("4 triangles in 0.1", "5 s\n"))


def test_the_tutorial_links_to_no_file_but_itself() -> None:
    """On the site a notebook's links are as they stand, where pages have other addresses.

    Itself is beside its page there, for those who download it.
    """
    cells = nbformat.read(PAGE, as_version=4)["cells"]
    texts = [cell["source"] for cell in cells if cell["cell_type"] == "markdown"]
    targets = [target for text in texts for target in re.findall(r"\]\((?!https://)([^)]*)\)", text)]
    assert len(texts) > 10 and targets == [PAGE.name]
    assert "include_source: true" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_the_menu_and_its_title_call_it_tutorial() -> None:
    title = "Tutorial: a club that split"
    assert f'"{title}": {PAGE.name}\n' in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert nbformat.read(PAGE, as_version=4)["cells"][0]["source"].splitlines()[0] == f"# {title}"


@pytest.mark.usefixtures("warmed")
def test_the_tutorial_shows_what_its_cells_give() -> None:
    page = nbformat.read(PAGE, as_version=4)
    nbformat.validate(page)
    again = copy.deepcopy(page)
    resources = {"metadata": {"path": str(PAGE.parent)}}
    NotebookClient(again, timeout=SECONDS, kernel_name="python3", resources=resources).execute()
    cells = [
        pair for pair in zip(page["cells"], again["cells"], strict=True) if pair[0]["cell_type"] == "code"
    ]
    assert len(cells) > 10 and sum("<svg " in str(shown(cell)) for cell, _ in cells) == 3
    for cell, now in cells:
        if cell["metadata"].get("measured"):
            assert [set(output) for output in shown(cell)] == [set(output) for output in shown(now)], ANEW
        else:
            assert shown(cell) == shown(now), f"{ANEW}; the cell is:\n{cell['source']}"
