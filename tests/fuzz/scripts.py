"""Cases as scripts: what was found is written so, and the corpus is made of such files.

A script repeats its case when it is run, and says what differs:
``PYTHONPATH=tests python tests/fuzz/corpus/NAME.py``.
"""

from __future__ import annotations

import runpy
from pathlib import Path

from fuzz.case import Case, Table, text

CORPUS = Path(__file__).parent / "corpus"

_TEMPLATE = '''\
"""{what}

{program}
"""

from fuzz.words import *

CASE = {case}

if __name__ == "__main__":
    repeat(CASE)
'''


def script(case: Case, what: str) -> str:
    """The file's text; ``what``: a sentence that says what was found."""
    tables = "\n".join(
        f"{t.name}: {', '.join(t.types)}; {len(t.rows)} rows"
        + "".join(f", {name}={value!r}" for name, value in t.options.items())
        for t in case.tables
        if isinstance(t, Table)
    )
    shown = f"{tables}\n\n{case.rules}".replace("\\", "\\\\").replace('"""', "'''")
    return _TEMPLATE.format(
        what=what.replace("\\", "\\\\").replace('"""', "'''"), program=shown, case=text(case)
    )


def read(path: Path) -> Case:
    """The case of a script."""
    case = runpy.run_path(str(path))["CASE"]
    assert isinstance(case, Case)
    return case


def corpus() -> list[Path]:
    """All scripts of the corpus, by name."""
    return sorted(CORPUS.glob("*.py"))
