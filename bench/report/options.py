"""What the commands that measure have in common: options, and the folder that results go to.

Invariant: a selection has a folder of its own below that of the whole, which it never replaces.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent / "results"
"""Where results go."""


class Options:
    """The parser of a command, to which it adds options of its own, and the checks of the common ones.

    Args:
        command: What runs it.
        description: What it does.
        thing: One of what ``--only`` selects by name.
        known_engines: Those that ``--engines`` names; empty for a command without this option.
    """

    def __init__(self, command: str, description: str, thing: str, known_engines: Sequence[str] = ()) -> None:
        self.thing = thing
        self.known_engines = known_engines
        self.parser = parser = argparse.ArgumentParser(prog=command, description=description)
        parser.add_argument("--quick", action="store_true", help=f"small generated {thing}s only, few runs")
        parser.add_argument(
            "--only",
            action="append",
            default=[],
            metavar="NAME",
            help=f"{thing}s whose name contains NAME; repeatable",
        )
        if known_engines:
            shown = ", ".join(known_engines)
            parser.add_argument(
                "--engines", default=",".join(known_engines), metavar="A,B", help=f"of {shown}"
            )
        parser.add_argument("--out", type=Path, metavar="FOLDER", help="where results go; in bench/results")

    def parse(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """The chosen options; ``engines`` is a list.  Ends the process for a wrong command."""
        chosen = self.parser.parse_args(arguments)
        if self.known_engines:
            chosen.engines = [name.strip() for name in chosen.engines.split(",") if name.strip()]
            unknown = [name for name in chosen.engines if name not in self.known_engines]
            if unknown or not chosen.engines:
                self.parser.error(
                    f"unknown engine {', '.join(unknown) or '(none given)'}; "
                    f"choose from {', '.join(self.known_engines)}"
                )
        return chosen

    def refuse_unmatched(self, chosen: argparse.Namespace, names: Iterable[str]) -> None:
        """End the process where a part of ``--only`` is in none of the names."""
        names = list(names)
        for part in chosen.only:
            if not any(part in name for name in names):
                self.parser.error(f"no {self.thing} has {part!r} in its name; choose from {', '.join(names)}")

    def words(self, chosen: argparse.Namespace, *flags: str) -> str:
        """How results name a selection; empty for the whole.  ``flags``: options without a value."""
        words = [word for word in flags if getattr(chosen, word)]
        if chosen.only:
            words.append("only " + ", ".join(chosen.only))
        if self.known_engines and set(chosen.engines) != set(self.known_engines):
            words.append("engines " + ", ".join(chosen.engines))
        return "; ".join(words)


def is_selected(chosen: argparse.Namespace, name: str) -> bool:
    """Whether ``--only`` has a part of the name, or is not given."""
    return not chosen.only or any(part in name for part in chosen.only)


def results_folder(chosen: argparse.Namespace, is_selection: bool, name: str = "") -> Path:
    """Where results go; ``name``: of their folder, where it is not the one of all."""
    if chosen.out is not None:
        return Path(chosen.out)
    return HOME / ("quick" if chosen.quick else "selection" if is_selection else "") / name
