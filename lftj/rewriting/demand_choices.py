"""What a rewriting by demand chose by estimates: written down, so that it can be done again the same.

Invariant: with its choices a program comes out as it was, whatever there is by then.  Heads of
which they say nothing, and those that are read by atoms which are not there any more, are whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lftj.language.syntax import Atom
from lftj.rewriting.rule_text import atom_text


@dataclass
class DemandChoices:
    """``restricted``: heads that are evaluated for some keys, or could have been, and whether they are.

    ``asked``: of each read that binds keys, by its place, the columns and the atoms that give them.
    ``notes``: what is said of heads.
    """

    restricted: dict[str, bool] = field(default_factory=dict)
    asked: dict[str, tuple[list[int], list[str]]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def ask(self, place: str, columns: Sequence[int], atoms: Iterable[Atom]) -> None:
        """Write down what binds the keys of a read."""
        self.asked[place] = list(columns), list(map(atom_text, atoms))

    def asking(self, place: str, atoms: Iterable[Atom]) -> tuple[frozenset[int], tuple[Atom, ...]] | None:
        """The columns that a read was chosen to bind, and by which of some atoms; None where by none."""
        if place not in self.asked:
            return None
        columns, texts = self.asked[place]
        there = {atom_text(atom): atom for atom in atoms}
        if not there.keys() >= set(texts):
            return None
        return frozenset(columns), tuple(there[text] for text in texts)

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it.

        >>> made = DemandChoices({"h": True}, {"q/0": ([0], ["e(x, y)"])}, {"h": "..."})
        >>> made.as_dict()["asked"], DemandChoices.of(made.as_dict()) == made
        ({'q/0': [[0], ['e(x, y)']]}, True)
        """
        return {**asdict(self), "asked": {place: [*asked] for place, asked in self.asked.items()}}

    @classmethod
    def of(cls, fields: Mapping[str, Any] | None) -> DemandChoices | None:
        """Those that :meth:`as_dict` gave, or what JSON makes of it."""
        if fields is None:
            return None
        asked = {place: (list(columns), list(texts)) for place, (columns, texts) in fields["asked"].items()}
        return cls(dict(fields["restricted"]), asked, dict(fields["notes"]))
