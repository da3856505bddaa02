"""`CORPUS`: the texts under ``corpus/``, each with what is expected of it beside its rows.

A file is a list of texts that end with ``;``, each under a line ``-- name: ...``; between the two may stand

    -- ordered            the rows come in one order; `-- ordered: 1, 3`: these columns of theirs do
    -- raises: words      it fails over the tables as they are at first, with these words of DuckDB's
    -- refused: words     the translator does not take it, with a word of the refusal (a regular expression)
    -- departs: words     it fails, with these words of an error, where DuckDB has rows
    -- kept: words        it is taken once, and refused as a view
    -- sqlite: why        SQLite's answer is another
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("corpus")
_WORDS = ("ordered", "raises", "refused", "departs", "kept", "sqlite")


@dataclass(frozen=True)
class Statement:
    """One text.

    Attributes:
        name: As the corpus has it, with the file's before it.
        ordered: Columns, from 0, whose values come in one order; empty: all of them; None: in any.
        raises, refused, departs, kept, sqlite: As the module says.
    """

    name: str
    text: str
    ordered: tuple[int, ...] | None = None
    raises: str | None = None
    refused: str | None = None
    departs: str | None = None
    kept: str | None = None
    sqlite: str | None = None

    def reads(self, table: str) -> bool:
        """Whether the text mentions the table."""
        return re.search(rf"\b{table}\b", self.text, re.IGNORECASE) is not None

    def is_departure(self, words: str) -> bool:
        """The corpus says that an error of these words is raised."""
        return self.departs is not None and re.search(self.departs, words) is not None

    def check_refusal(self, words: str, kept: bool = False) -> None:
        """The corpus says that it is refused, and ``words`` name the construct."""
        listed = (self.kept if kept else None) or self.refused
        assert listed is not None, f"refused, and not listed as such: {words}"
        assert re.search(listed, words, re.IGNORECASE), f"refused for another reason than {listed}: {words}"


def read(path: Path) -> list[Statement]:
    """The texts of one file.  Raises ValueError for a line after a name that is none of the above."""
    found = []
    for block in re.split(r"^-- name:", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, *lines = block.strip().splitlines()
        said: dict[str, str] = {}
        while lines[0].startswith("--"):
            word, _, rest = lines.pop(0).removeprefix("--").strip().partition(":")
            if word not in _WORDS:
                raise ValueError(f"{path.name}, {name.strip()}: what does -- {word} say?")
            said[word] = rest.strip()
        ordered = said.pop("ordered", None)
        columns = None if ordered is None else tuple(int(c) - 1 for c in ordered.split(",") if c)
        text = "\n".join(lines).strip().removesuffix(";")
        found.append(Statement(f"{path.stem}: {name.strip()}", text, columns, **said))
    return found


CORPUS = tuple(statement for path in sorted(FOLDER.glob("*.sql")) for statement in read(path))
