"""Options of commands that keep rules or apply changes, beside those of :mod:`lftj.shell.options`.

The engine is not imported for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import click

from lftj.errors import UnknownRelationError
from lftj.shell.inputs import Pairs
from lftj.shell.options import ANY_FILE, SOURCE, TARGET, picture
from maintenance.heads.strategies import DEFAULT, STRATEGIES

STDOUT = "-"

STRATEGY = click.option(
    "--strategy",
    type=click.Choice(list(STRATEGIES)),
    default=DEFAULT,
    show_default=True,
    help="How to keep the heads up to date.",
)
WANTED = click.option(
    "--result",
    metavar="HEAD",
    multiple=True,
    help="Keep this head, and others for the keys that it needs of them; may be repeated.  Without it all are"
    " kept.",
)
CHANGES = click.option(
    "--changes",
    type=SOURCE,
    multiple=True,
    required=True,
    help="Change relation NAME by the file PATH, which has its columns, 'weight' (+1 or -1) and optionally "
    "'txn', by all files of a pattern such as 'new/*.csv' in one transaction (with 'txn' by that), or by "
    "what comes on stdin (-); may be repeated.",
)
NULLS_OF_CHANGES = click.option(
    "--nulls",
    type=click.Choice(["refuse", "drop"]),
    default="refuse",
    show_default=True,
    help="What to do about rows with NULL.",
)
RESULTS = (
    click.option(
        "--out-changes",
        type=TARGET,
        multiple=True,
        help="Write the changes of head NAME to PATH, in the format of its suffix, or as CSV to stdout (-) "
        "with each commit; may be repeated.",
    ),
    click.option(
        "--out",
        type=TARGET,
        multiple=True,
        help="Write head NAME, as it is in the end, to PATH or -; may be repeated.",
    ),
    click.option(
        "--stats", type=ANY_FILE, help="Write what each transaction took to PATH or -, as JSON lines."
    ),
    picture("Write memory and times of the commits to PATH or -, as a picture."),
    click.option("--verify", is_flag=True, help="Recompute every head in the end, and fail if one differs."),
)


@dataclass(frozen=True)
class Results:
    """Where what changes do is to be written.

    Raises UsageError where two results go to one place, or a head is named twice.
    """

    out_changes: Pairs = ()
    out: Pairs = ()
    stats: str | None = None
    svg: str | None = None
    verify: bool = False

    def __post_init__(self) -> None:
        for option, pairs in (("--out-changes", self.out_changes), ("--out", self.out)):
            names = [name for name, _ in pairs]
            for name in names:
                if names.count(name) > 1:
                    raise click.UsageError(f"{option} gives {name!r} twice")
        paths = [path for _, path in (*self.out_changes, *self.out)]
        paths += filter(None, (self.stats, self.svg))
        for path in paths:
            if paths.count(path) > 1:
                where = "stdout" if path == STDOUT else repr(path)
                raise click.UsageError(f"two results can't both go to {where}")

    def check_heads(self, heads: Iterable[str]) -> None:
        """Raise UnknownRelationError where one that is to be written is none of these."""
        for name, _ in (*self.out_changes, *self.out):
            if name not in heads:
                raise UnknownRelationError(f"no rule has the head {name!r}; heads are {', '.join(heads)}")
