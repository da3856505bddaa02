"""Demand: a head that is read with bound keys only is evaluated for those keys (magic sets).

    other(o, s) <- line(o, s), line(o, t), t != s.
    q(n) <- supplier(s, n), n < 9, line(o, s), !other(o, s).

becomes::

    other#keys1(o, s) <- supplier(s, n), line(o, s), n < 9.
    other(o, s) <- line(o, s), line(o, t), other#keys1(o, s), t != s.
    q(n) <- supplier(s, n), n < 9, line(o, s), !other(o, s).

Sources: Bancilhon, Maier, Sagiv, Ullman: Magic sets and other strange ways to implement logic programs (PODS
1986); Beeri, Ramakrishnan: On the power of magic (J. Logic Programming 10, 1991).  A recursion has keys that
go round with it, but where they stay the same, or it is right-linear (:mod:`lftj.rewriting.right_linear`).

Invariants

1. A head has one set of bound columns, those that all of its readers bind, and one relation of keys, that of
   all of them together.  It holds the rows, groups or partitions of these keys as the program as written has
   them, whole; so all that reads it has what it has as written.
2. The target, and a head that is read with nothing bound, are evaluated whole.  Columns that are bound are
   given by atoms in every body; they are keys of functions and groups, partitions of windows, and no floats.
3. Keys come from tables and from heads that do not depend on the restricted one; they compute nothing, and
   can't fail.  So they are finite, nothing depends on itself that did not before but they in a recursion, and
   never through a negation or an aggregate: keys of a component with ``min`` or ``max`` read none of it.

Choice: by the listings of the bodies, with and without keys, as :mod:`lftj.rewriting.elimination` estimates
them; a recursion by the share of its keys that is asked for.  Cost: a few estimates for each read of a head.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lftj.language.body import Assignment, Body, CheckedHead, CheckedProgram, CheckedRule
from lftj.language.one_row import ONE_ROW
from lftj.language.several_aggregates import is_auxiliary, shown_name
from lftj.language.strata import components
from lftj.language.syntax import Aggregate, Atom, Constant, Term, Variable, Wildcard
from lftj.rewriting.elimination import VIEW_ROW, Names
from lftj.rewriting.head_sizes import Size, Sizes, safe_filters
from lftj.rewriting.joins import bound_by, of_atom
from lftj.rewriting.key_relations import KeyRelations, KeyRule, holds_keys
from lftj.rewriting.right_linear import RightLinear
from lftj.rewriting.rule_text import body_text
from lftj.rewriting.shared_views import free_name
from lftj.storage.catalog import Catalog
from lftj.values.domains import Domains
from lftj.values.kinds import literal_type
from lftj.values.schema import ColumnType

LEAST_SPARED = 1e5
"""Operations that keys are expected to spare, at least."""

MOST_ASKED = 0.25
"""The share that is to be left at most: of the operations, and of the keys of a recursion."""

NARROWS = 0.8
"""An atom that leaves more of the keys than this has no part in finding them."""


def with_demand(
    program: CheckedProgram, target: str, catalog: Catalog, domains: Domains, recursive: bool = True
) -> CheckedProgram:
    """The program whose heads are evaluated for the keys that the target needs; itself where none is read so.

    ``catalog``: the relations that are there.  ``recursive``: whether heads that depend on themselves, too.
    Its ``demand`` says of each head with readers that bind keys what it is evaluated for, or why it is whole.
    """
    rewriting = _Rewriting(program, target, catalog, domains)
    for component in rewriting.readers_first():
        if target not in component and (recursive or not program.component_of(component[0])):
            rewriting.restrict(component)
    return rewriting.program()


@dataclass(frozen=True)
class _Read:
    """An atom of a body; ``constants``: its columns that stand for one key."""

    head: CheckedHead
    body: Body
    atom: Atom
    constants: frozenset[int]

    @property
    def reader(self) -> str:
        return self.head.relation

    def columns(self, bound: Names) -> frozenset[int]:
        """Those of its columns that are constants or some variables; of a function the keys only."""
        terms = self.atom.terms[:-1] if self.atom.functional else self.atom.terms
        found = {at for at, term in enumerate(terms) if isinstance(term, Variable) and term.name in bound}
        return frozenset(found | self.constants & set(range(len(terms))))


@dataclass(frozen=True)
class _Asking:
    """Columns of a head that a reader binds, and the atoms by which it does."""

    columns: frozenset[int]
    atoms: tuple[Atom, ...]


@dataclass(frozen=True)
class _Keys:
    """The relation of a head's keys, and what columns of the head they are."""

    columns: tuple[int, ...]
    name: str


class _Rewriting:
    """One program's rewriting for one target."""

    def __init__(self, program: CheckedProgram, target: str, catalog: Catalog, domains: Domains) -> None:
        self._program = program
        self._catalog = catalog
        self._domains = domains
        self._needed = {target} | program.read_by(target)
        self._sizes = Sizes(program, catalog)
        self._keys: dict[str, _Keys] = {}
        self._instead: dict[str, list[CheckedRule]] = {}  # rules of heads that have others now
        self._by_ends: dict[
            str, list[tuple[CheckedRule, CheckedHead]]
        ] = {}  # of those over ends of ways, all
        self._notes: dict[str, str] = {}
        reads: dict[str, set[str]] = {name: set() for name in self._needed}
        for name in self._needed:
            for rule, _ in program.rules_of(name):
                reads[name].update(*(body.relations for body in rule.bodies))
        self._relations = KeyRelations(program, catalog, domains, reads)

    def readers_first(self) -> list[tuple[str, ...]]:
        """The components of the heads that are needed."""
        found = components(
            {name: sorted(read & self._needed) for name, read in self._relations.reads.items()}
        )
        return found[::-1]

    # -- one component ---------------------------------------------------------------------

    def restrict(self, component: tuple[str, ...]) -> None:
        """Give the heads keys, if there are any and that pays."""
        inside = frozenset(component)
        if not all(self._program.rules_of(name) for name in component):
            return  # the relation of one row
        eligible = {name: _eligible(self._program, name) for name in component}
        reads = [read for name in sorted(self._needed) for read in self._reads_by(name, inside)]
        asked = [
            (read, self._asking(read, eligible[read.atom.relation], inside))
            for read in reads
            if read.reader not in inside
        ]
        bound = dict(eligible)
        for read, asking in asked:
            bound[read.atom.relation] &= asking.columns
        if not self._program.component_of(component[0]):
            if bound[component[0]]:
                self._restrict_head(component[0], bound[component[0]], asked)
            return
        within = [read for read in reads if read.reader in inside]
        self._restrict_recursive(component, bound, asked, within)

    def _reads_by(self, name: str, inside: frozenset[str]) -> Iterator[_Read]:
        """What a head reads of some heads."""
        for rule, head in self._by_ends.get(name) or self._program.rules_of(name):
            for body in rule.bodies:
                for atom in (*body.atoms, *body.negations):
                    if atom.relation in inside:
                        yield _Read(head, body, atom, self._constants(atom))

    def _constants(self, atom: Atom) -> frozenset[int]:
        """The columns of an atom with a literal that a column of keys can hold: of the domain itself."""
        columns = self._program.derived[atom.relation].columns
        return frozenset(
            at
            for at, (term, column) in enumerate(zip(atom.terms, columns, strict=True))
            if isinstance(term, Constant) and self._domains.of(literal_type(term.value)) is column.type.domain
        )

    def _restrict_head(
        self, name: str, bound: frozenset[int], asked: Sequence[tuple[_Read, _Asking]]
    ) -> None:
        columns = tuple(sorted(bound))
        rules, cost, rows = self._key_rules([(read, one.atoms) for read, one in asked], columns)
        rows = min(rows, self._sizes.keys_of(name, columns))
        size = self._key_size(rules, rows)
        left = cost + VIEW_ROW * rows
        for rule, head in self._program.rules_of(name):
            names = tuple(head.variables[place] for place in columns)
            for body in rule.bodies:
                left += self._sizes.listing(body.atoms, body, _asked_of(head), (names, size)).cost
        whole = self._whole(name)
        if self._pays(name, columns, rows, whole, left):
            self._give(name, columns, self._relations.named(name, columns, rules), size)
            self._instead[name] = self._guarded(name)

    def _pays(self, name: str, columns: Sequence[int], rows: float, whole: float, left: float) -> bool:
        """Whether so much is spared; noted either way."""
        pays = left <= MOST_ASKED * whole and whole - left >= LEAST_SPARED
        reads = self._relations.reads
        readers = [
            shown_name(one) for one in self._program.derived if one != name and name in reads.get(one, ())
        ]
        shown = ", ".join(dict.fromkeys(readers))
        verb = "read" if "," in shown else "reads"
        keys = ", ".join(self._program.derived[name].columns[at].name for at in columns)
        number = f"about {rows:,.0f} of {self._sizes.keys_of(name, columns):,.0f}"
        if pays:
            note = f"evaluated for the keys ({keys}) that {shown} {verb} only, {number}"
        else:
            cost = f"{left:,.0f} operations instead of {whole:,.0f}"
            note = f"evaluated whole: {shown} {verb} {number} keys ({keys}), for which it takes about {cost}"
        self._notes[name] = note
        return pays

    # -- what asks for keys ----------------------------------------------------------------

    def _asking(self, read: _Read, eligible: frozenset[int], inside: frozenset[str]) -> _Asking:
        """The atoms of the reader's body that bind keys for the least; no columns where nothing does."""
        name, body = read.atom.relation, read.body
        tables = [
            one
            for one in body.atoms
            if one.relation in self._catalog
            or (holds_keys(one.relation) and not self._relations.depends(one.relation, inside))
        ]
        own = self._key_atom(read.head)
        if own is not None and not self._relations.depends(own.relation, inside):
            tables.append(own)
        heads = [
            one
            for one in body.atoms
            if one.relation in self._program.derived
            and not is_auxiliary(one.relation)
            and not self._relations.depends(one.relation, inside)
        ]
        best, least = _Asking(frozenset(), ()), math.inf
        if not (tables or heads or read.constants):
            return best
        whole = self._whole(name)
        for atoms in ([*tables], [*tables, *heads]) if heads else ([*tables],):
            for part in _parts(atoms):
                columns = read.columns(frozenset(bound_by(part))) & eligible
                if not columns:
                    continue
                used, cost, rows = self._narrowing(read, part, columns)
                share = min(1.0, rows / self._sizes.keys_of(name, sorted(columns)))
                left = cost + VIEW_ROW * rows + share * whole
                if left < least:
                    best, least = _Asking(columns, used), left
            if least <= MOST_ASKED * whole:  # of tables alone: several heads may have the same
                break
        return best

    def _whole(self, name: str) -> float:
        """What a head as written costs by itself."""
        if self._program.component_of(name):
            return self._sizes.of(name).rows
        rules = self._program.rules_of(name)
        listings = (
            self._sizes.listing(b.atoms, b, _asked_of(head)) for rule, head in rules for b in rule.bodies
        )
        return sum(one.cost for one in listings)

    def _narrowing(
        self, read: _Read, atoms: Sequence[Atom], columns: Iterable[int]
    ) -> tuple[tuple[Atom, ...], float, float]:
        """The atoms that bind the columns, less those that narrow nothing; what they cost, and the keys."""
        wanted = _names(read.atom.terms[place] for place in columns)
        used = _connected(atoms, wanted)
        found = self._sizes.listing(used, read.body, wanted)
        for atom in reversed(used):
            fewer = [one for one in used if one is not atom]
            if not frozenset(wanted) <= frozenset(bound_by(fewer)):
                continue
            if _connected(fewer, wanted) != fewer:
                continue
            without = self._sizes.listing(fewer, read.body, wanted)
            if found.rows > NARROWS * without.rows:
                used, found = fewer, without
        return tuple(used), found.cost, found.rows

    def _key_rules(
        self, asked: Iterable[tuple[_Read, Sequence[Atom]]], columns: Sequence[int]
    ) -> tuple[list[KeyRule], float, float]:
        """The rules of the keys, each once, and about what they cost and give."""
        found: dict[str, KeyRule] = {}
        cost = rows = 0.0
        for read, atoms in asked:
            used, one_cost, one_rows = self._narrowing(read, atoms, columns)
            rule = self._key_rule(read, used, columns)
            if rule.text not in found:
                found[rule.text] = rule
                cost, rows = cost + one_cost, rows + one_rows
        return list(found.values()), cost, rows

    def _key_rule(self, read: _Read, atoms: Sequence[Atom], columns: Sequence[int]) -> KeyRule:
        body = read.body
        bound = bound_by(atoms)
        types = {name: body.types[name] for name in bound}
        assignments: list[Assignment] = []
        names = []
        for place in columns:
            term = read.atom.terms[place]
            if isinstance(term, Constant):
                name = free_name("key", types)
                arrow = literal_type(term.value)
                types[name] = ColumnType(self._domains.of(arrow), arrow)
                assignments.append(Assignment(name, term))
                names.append(name)
            else:
                assert isinstance(term, Variable)
                names.append(term.name)
        known = frozenset(bound)
        negations = tuple(
            one for one in body.negations if one.relation in self._catalog and of_atom(one) <= known
        )
        made = tuple(atoms) or (Atom(ONE_ROW, (Wildcard(),)),)
        return KeyRule(
            tuple(names), Body(made, negations, safe_filters(body, known), tuple(assignments), types)
        )

    def _key_size(self, rules: Sequence[KeyRule], rows: float) -> Size:
        """The size of a relation of keys."""
        columns = range(len(rules[0].names))
        found = (sum(self._sizes.distinct(rule.names[at], rule.body) for rule in rules) for at in columns)
        return Size(max(1.0, rows), tuple(max(1.0, min(rows, keys)) for keys in found))

    # -- heads over their keys -------------------------------------------------------------

    def _give(self, name: str, columns: Sequence[int], keys: str, size: Size) -> None:
        self._keys[name] = _Keys(tuple(columns), keys)
        self._relations.reads[name].add(keys)
        self._sizes.known.setdefault(keys, size)

    def _key_atom(self, head: CheckedHead) -> Atom | None:
        """What a body of a head reads of its keys."""
        keys = self._keys.get(head.relation)
        if keys is None:
            return None
        return Atom(keys.name, tuple(Variable(head.variables[place]) for place in keys.columns))

    def _guarded(self, name: str) -> list[CheckedRule]:
        """The rules of a head over its keys; a body that reads it with the same keys has them already."""
        found = []
        for rule, head in self._program.rules_of(name):
            own = self._key_atom(head)
            assert own is not None
            columns = self._keys[name].columns
            bodies = []
            for body in rule.bodies:
                same = any(
                    atom.relation == name and tuple(atom.terms[place] for place in columns) == own.terms
                    for atom in body.atoms
                )
                bodies.append(body if same else replace(body, atoms=(*body.atoms, own)))
            found.append(replace(rule, heads=(head,), bodies=tuple(bodies)))
        return found

    # -- recursion -------------------------------------------------------------------------

    def _restrict_recursive(
        self,
        component: tuple[str, ...],
        bound: dict[str, frozenset[int]],
        asked: Sequence[tuple[_Read, _Asking]],
        within: Sequence[_Read],
    ) -> None:
        first = component[0]
        read_outside = list(dict.fromkeys(read.atom.relation for read, _ in asked))
        if not all(bound[name] for name in read_outside):
            return
        static = _static(within) & bound[first] if len(component) == 1 else frozenset()
        ends = None if static or len(component) > 1 else RightLinear.of(self._program, first, bound[first])
        if static:
            bound = {first: static}
        elif ends is not None:
            bound = {first: frozenset(ends.columns)}
        else:
            bound = self._bound_within(bound, within)
            if not all(bound[name] for name in read_outside):
                return
        outside: dict[str, list[KeyRule]] = {}
        rows = 0.0
        for name in read_outside:
            columns = tuple(sorted(bound[name]))
            some = [(read, one.atoms) for read, one in asked if read.atom.relation == name]
            outside[name], cost, asked_for = self._key_rules(some, columns)
            keys, whole = self._sizes.keys_of(name, columns), self._whole(name)
            left = cost + VIEW_ROW * asked_for + whole * min(1.0, asked_for / keys)
            rows += asked_for
            if not self._pays(name, columns, min(asked_for, keys), whole, left):
                return
        if not static and ends is None:
            self._close(component, bound, outside, within, rows)
            return
        columns = tuple(sorted(bound[first]))
        keys_size = self._key_size(outside[first], rows)
        named = self._relations.named(first, columns, outside[first])
        if ends is None:
            self._give(first, columns, named, keys_size)
            self._instead[first] = self._guarded(first)
            return
        self._sizes.known.setdefault(named, keys_size)
        ways, exits = ends.rules(named, self._relations)
        reached = self._reached(rows, columns, first)
        ends_size = rows * math.sqrt(self._sizes.keys_of(first, columns))
        self._sizes.known[ways] = Size(ends_size, (*keys_size.distinct, *reached.distinct))
        self._instead[first] = exits
        made = [rule for rule in self._relations.rules if rule.heads[0].relation == ways]
        self._by_ends[first] = [(rule, rule.heads[0]) for rule in (*exits, *made)]
        self._relations.reads[first] = {
            read for rule in exits for body in rule.bodies for read in body.relations
        }

    def _reached(self, rows: float, columns: Sequence[int], name: str) -> Size:
        """Keys that a recursion comes to: the guess is that one leads to the square root of all."""
        keys = self._sizes.keys_of(name, columns)
        found = min(keys, rows * math.sqrt(keys))
        return Size(found, tuple(min(found, self._sizes.of(name).distinct[at]) for at in columns))

    def _bound_within(
        self, bound: dict[str, frozenset[int]], within: Sequence[_Read]
    ) -> dict[str, frozenset[int]]:
        """The columns that the component's own reads bind, too, given those of their heads."""
        while True:
            following = dict(bound)
            for read in within:
                names = frozenset(bound_by(self._asking_within(read, following)))
                following[read.atom.relation] &= read.columns(names)
            if following == bound:
                return bound
            bound = following

    def _asking_within(self, read: _Read, bound: Mapping[str, frozenset[int]]) -> list[Atom]:
        """The atoms of a body of a component that say which keys of it are read: those that the head's keys
        lead to; of the component those before the read, where nothing else binds a key.
        """
        own = Atom("", tuple(Variable(read.head.variables[at]) for at in sorted(bound[read.reader])))
        inside = frozenset(bound)
        others = [one for one in read.body.atoms if one.relation not in inside]
        others = [
            one
            for one in others
            if one.relation in self._catalog
            or (one.relation != ONE_ROW and not self._relations.depends(one.relation, inside))
        ]
        wanted = bound[read.atom.relation]
        found = _reached(own, others)
        if wanted & read.columns(frozenset(bound_by(found))) or self._has_best(inside):
            return found
        before = itertools.takewhile(lambda one: one is not read.atom, read.body.atoms)
        return _reached(own, [*others, *(one for one in before if one.relation in inside)])

    def _has_best(self, inside: Iterable[str]) -> bool:
        return any(head.extremum for name in inside for _, head in self._program.rules_of(name))

    def _close(
        self,
        component: Sequence[str],
        bound: Mapping[str, frozenset[int]],
        outside: Mapping[str, list[KeyRule]],
        within: Sequence[_Read],
        rows: float,
    ) -> None:
        """Relations of keys that go round with the component's rules."""
        names = [name for name in component if bound[name]]
        for name in names:
            columns = sorted(bound[name])
            self._give(name, columns, self._relations.new_name(name), self._reached(rows, columns, name))
        for name in names:
            keys = self._keys[name]
            rules = {rule.text: rule for rule in outside.get(name, [])}
            for read in within:
                if read.atom.relation != name:
                    continue
                own = self._key_atom(read.head)
                atoms = self._asking_within(read, bound)
                atoms = [own if one.relation == "" and own is not None else one for one in atoms]
                atoms = [one for one in atoms if one.relation]
                wanted = _names(read.atom.terms[place] for place in keys.columns)
                rule = self._key_rule(read, _connected(atoms, wanted), keys.columns)
                itself = Atom(keys.name, tuple(map(Variable, rule.names)))
                if itself not in rule.body.atoms:
                    rules[rule.text] = rule
            self._relations.define(keys.name, name, keys.columns, list(rules.values()))
        for name in names:
            self._instead[name] = self._guarded(name)

    # -- the program -----------------------------------------------------------------------

    def program(self) -> CheckedProgram:
        """As it is now."""
        if not self._notes:
            return self._program
        if not self._instead:
            return replace(self._program, demand=self._notes)
        rules = [*self._relations.rules]
        for rule in dict.fromkeys(rule for stratum in self._program.strata for rule in stratum):
            left = tuple(head for head in rule.heads if head.relation not in self._instead)
            rules += [replace(rule, heads=left)] if left and left != rule.heads else [rule] if left else []
        rules += _together(itertools.chain.from_iterable(self._instead.values()))
        strata, circles = _strata(rules)
        return replace(
            self._program,
            strata=strata,
            components=circles,
            derived={**self._program.derived, **self._relations.derived},
            demand=self._notes,
        )


def _together(rules: Iterable[CheckedRule]) -> Iterator[CheckedRule]:
    """The rules, those of one rule as written with the same bodies as one: its heads share their search."""
    found: dict[tuple[object, ...], CheckedRule] = {}
    for rule in rules:
        key = (rule.span, *(body_text(body) for body in rule.bodies), id(rule.bodies[0].types))
        known = found.get(key)
        found[key] = rule if known is None else replace(known, heads=(*known.heads, *rule.heads))
    return iter(found.values())


def _strata(
    rules: Sequence[CheckedRule],
) -> tuple[tuple[tuple[CheckedRule, ...], ...], tuple[tuple[str, ...], ...]]:
    """The rules in evaluation order, and the components that go round."""
    reads: dict[str, dict[str, None]] = {}
    for rule in rules:
        for head in rule.heads:
            found = reads.setdefault(head.relation, {})
            for body in rule.bodies:
                found.update(dict.fromkeys(body.relations))
    level: dict[str, int] = {}
    circles = []
    for component in components(
        {name: [one for one in read if one in reads] for name, read in reads.items()}
    ):
        inside = frozenset(component)
        below = [level[one] for name in component for one in reads[name] if one in level]
        level.update(dict.fromkeys(component, 1 + max(below, default=-1)))
        if any(one in inside for name in component for one in reads[name]):
            circles.append(tuple(name for name in reads if name in inside))
    strata: list[list[CheckedRule]] = [[] for _ in range(1 + max(level.values()))]
    for rule in rules:
        for at in sorted({level[head.relation] for head in rule.heads}):
            heads = tuple(head for head in rule.heads if level[head.relation] == at)
            strata[at].append(rule if heads == rule.heads else replace(rule, heads=heads))
    return tuple(map(tuple, strata)), tuple(circles)


# -- what can be bound -------------------------------------------------------------------------


def _eligible(program: CheckedProgram, name: str) -> frozenset[int]:
    """The columns by which a head can be restricted."""
    columns = program.derived[name].columns
    found = {at for at, column in enumerate(columns) if column.type.domain.name != "float"}
    for rule, head in program.rules_of(name):
        names = set(head.variables)
        for window in head.windows:
            names &= {one.name for one in window.per}
        for body in rule.bodies:
            names &= set(body.atom_variables())
        found &= {at for at, variable in enumerate(head.variables) if variable in names}
    return frozenset(found)


def _static(within: Sequence[_Read]) -> frozenset[int]:
    """The columns that each of a recursive head's reads of itself has from the head."""
    found = None
    for read in within:
        names = read.head.variables
        same = {at for at, name in enumerate(names) if read.atom.terms[at] == Variable(name)}
        found = same if found is None else found & same
    return frozenset(found or ())


def _asked_of(head: CheckedHead) -> tuple[str, ...]:
    """The variables of a body that a head lists."""
    value = head.value.arguments if isinstance(head.value, Aggregate) else ()
    others = [head.value] if isinstance(head.value, str) else _names(value)
    return tuple(dict.fromkeys((*head.variables, *others)))


def _names(terms: Iterable[Term]) -> tuple[str, ...]:
    """The variables among terms, each once."""
    return tuple(dict.fromkeys(term.name for term in terms if isinstance(term, Variable)))


# -- connected atoms ---------------------------------------------------------------------------


def _connected(atoms: Sequence[Atom], wanted: Iterable[str]) -> list[Atom]:
    """The atoms that share variables with those of some names, directly or not, in their order."""
    known = set(wanted)
    found: set[int] = set()
    while True:
        more = {at for at, one in enumerate(atoms) if at not in found and of_atom(one) & known}
        if not more:
            return [one for at, one in enumerate(atoms) if at in found]
        found |= more
        known.update(*(of_atom(atoms[at]) for at in more))


def _reached(own: Atom, atoms: Sequence[Atom]) -> list[Atom]:
    """An atom of keys, and those that it leads to; all where it has none."""
    return [own, *_connected(atoms, of_atom(own))] if own.terms else [*atoms]


def _parts(atoms: Sequence[Atom]) -> list[list[Atom]]:
    """All atoms, and where they do not hang together each part alone; none at all for constants."""
    parts: list[list[Atom]] = []
    for one in atoms:
        if of_atom(one) and not any(one in part for part in parts):
            parts.append(_connected(atoms, of_atom(one)))
    return [[], *parts, *([[*atoms]] if len(parts) > 1 else [])]
