"""Rules: the text of a program, and which part of the SQL each rule comes from.

The text is the program: it can be read, is what a folder keeps, and is parsed as any other (1 to 2 ms for a
query of TPC-H); the place of each rule in the SQL is kept beside it.  Rules whose head nothing reads are left
out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lftj.sql.nodes import Expression, Place, Term, Variable, WindowCall
from lftj.sql.translation.bodies import Body, Shape, determined
from lftj.sql.translation.text import Refuse, Writer
from lftj.values.names import nearest_usable

Window = tuple[Variable, WindowCall]
"""A window of a rule, and the variable that takes its value."""


@dataclass(frozen=True)
class Rule:
    """``terms``: the head's columns with what they hold; ``defaults``: what, where there is no assignment.

    ``body`` is without ``windows``, which read it.  ``once``: no two of its assignments give equal terms.
    """

    head: str
    terms: tuple[tuple[str, str], ...]
    defaults: Mapping[str, str]
    body: str
    windows: tuple[str, ...]
    bag: bool
    once: bool
    reads: frozenset[str]
    place: Place | None

    @property
    def text(self) -> str:
        shown = []
        for column, term in self.terms:
            default = f" default {self.defaults[column]}" if column in self.defaults else ""
            shown.append(f"{column}: {term}{default}")
        body = ", ".join(filter(None, [self.body, *self.windows]))
        return f"{'bag ' if self.bag else ''}{self.head}({', '.join(shown)}) <- {body}."


@dataclass
class Rules:
    """The rules of one statement; ``taken``: names that heads can't have; ``result``: that of its answer."""

    result: str
    taken: set[str]
    refuse: Refuse
    shapes: dict[str, Shape] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)

    def name(self, wanted: str) -> str:
        """A name that is free, like the one wanted."""
        name = nearest_usable(f"{self.result}_{wanted}", self.taken)
        self.taken.add(name)
        return name

    def add(
        self,
        head: str,
        terms: Sequence[tuple[str, Expression]],
        body: Body,
        *,
        bag: bool = False,
        windows: Sequence[Window] = (),
        place: Place | None = None,
    ) -> None:
        """A rule for a head: columns, and what they hold."""
        writing = Writer(body, self.shapes, self.refuse)
        shown = tuple((column, writing.term(term)) for column, term in terms)
        defaults = {name: of.default for name, of in terms if isinstance(of, Term) and of.default}
        more = tuple(writing.window(*window) for window in windows)
        once = determined(body, (term for _, term in terms), self.shapes)
        text = writing.body()
        reads = frozenset(writing.reads())
        self.rules.append(Rule(head, shown, defaults, text, more, bag, once, reads, place or body.place))

    def becomes_result(self, body: Body, names: Sequence[str]) -> bool:
        """Give the result's name, and these to its columns, to a head of which nothing reads but this body.

        False where the body does not show the head as it is.
        """
        heads = {atom.relation for atom in body.atoms}
        columns = {of: name for atom in body.atoms for name, of in atom.terms}
        shown = [columns.get(of, "") for of in body.columns if isinstance(of, Variable)]
        new = dict(zip(shown, names, strict=False))
        mine = [rule for rule in self.rules if {rule.head} == heads]
        others = len(body.atoms) > 1 or body.tests or any(rule.reads & heads for rule in self.rules)
        shows = len(new) == len(names) and all(dict(rule.terms).keys() == new.keys() for rule in mine)
        if others or not mine or not shows:
            return False
        for rule in mine:
            terms = tuple((name, dict(rule.terms)[column]) for column, name in new.items())
            defaults = {new[column]: value for column, value in rule.defaults.items()}
            at = self.rules.index(rule)
            self.rules[at] = replace(rule, head=self.result, terms=terms, defaults=defaults)
        return True

    def needed(self, head: str) -> list[Rule]:
        """The rules that a head needs, each head's behind those of what it reads."""
        wanted, waiting = {head}, [head]
        while waiting:
            name = waiting.pop()
            more = {one for rule in self.rules if rule.head == name for one in rule.reads} - wanted
            wanted |= more
            waiting += more
        return [rule for rule in self.rules if rule.head in wanted]
