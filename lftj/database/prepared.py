"""Prepared programs: parsed and checked once, planned once, whatever becomes of data and parameters.

Invariants

1. A checked program is used as long as the relations that it reads have the schemas
   that it was checked against, and none of its heads or tests has become a relation.
2. Nothing here holds data: plans are apart from it (:mod:`lftj.evaluation.plans`).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from lftj.language.body import CheckedProgram
from lftj.values.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

    from lftj.evaluation.explain import Explanation
    from lftj.evaluation.plans import Plans
    from lftj.language.syntax import Program
    from lftj.rewriting.one_off import OneOffPrograms
    from lftj.values.literals import Value

PREPARED = 64
"""Programs that a database remembers."""

VARIANTS = 8
"""Of one program, for so many combinations of its parameters' types."""


def parsed(rule: str | Program) -> Program:
    """The syntax tree of a text, a tree as it is.  Raises RuleSyntaxError."""
    from lftj.language.parser import parse  # it brings the grammar

    return parse(rule) if isinstance(rule, str) else rule


@dataclass(frozen=True)
class CheckedForTypes:
    """A program checked with values of some types, the schemas that it reads, and the plans of its bodies.

    It serves all values of these types: they come with each evaluation.
    """

    program: CheckedProgram
    reads: dict[str, Schema]
    plans: Plans
    tests: frozenset[str]
    """Calls that would be atoms if there were relations of these names."""
    one_off: OneOffPrograms

    def holds_for(self, schemas: Mapping[str, Schema]) -> bool:
        """Whether the program reads relations of these schemas and derives none of them."""
        read = all(schemas.get(name) == was for name, was in self.reads.items())
        return read and not any(name in schemas for name in (*self.program.derived, *self.tests))


class PreparedProgram:
    """A program with what was checked and planned of it.  Safe to use from several threads."""

    def __init__(self, tree: Program) -> None:
        from lftj.language.parameters import parameters_of

        self.tree = tree
        self.parameters = parameters_of(tree)
        self._variants: OrderedDict[object, CheckedForTypes] = OrderedDict()
        self._lock = threading.Lock()

    def checked(
        self,
        values: Mapping[str, Value],
        schemas: Mapping[str, Schema],
        check: Callable[[Program], CheckedProgram],
        ordered: bool,
    ) -> CheckedForTypes:
        """The program for parameters of the types that these values have.

        ``ordered``: whether ``check`` leaves rules as they are written, for a key order that is given.
        """
        from lftj.evaluation.plans import Plans
        from lftj.language.parameters import types_of, with_values
        from lftj.language.predicates import tests_of
        from lftj.rewriting.one_off import OneOffPrograms

        variant = types_of(values), ordered
        with self._lock:
            kept = self._variants.get(variant)
        if kept is None or not kept.holds_for(schemas):
            program = check(with_values(self.tree, values))
            read = {
                name
                for stratum in program.strata
                for rule in stratum
                for body in rule.bodies
                for name in body.relations
            }
            reads = {name: schemas[name] for name in read - set(program.derived)}
            kept = CheckedForTypes(program, reads, Plans(), tests_of(program.tree), OneOffPrograms(program))
            with self._lock:
                self._variants[variant] = kept
                while len(self._variants) > VARIANTS:
                    self._variants.popitem(last=False)
        return kept


class PreparedPrograms:
    """The programs that a database remembers, by text or tree; the one used last goes last."""

    def __init__(self) -> None:
        self._programs: OrderedDict[str | Program, PreparedProgram] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, rule: str | Program) -> PreparedProgram:
        """A program, parsed when it is new.  Raises RuleSyntaxError."""
        with self._lock:
            known = self._programs.get(rule)
            if known is not None:
                self._programs.move_to_end(rule)
                return known
        known = PreparedProgram(parsed(rule))
        with self._lock:
            self._programs[rule] = known
            while len(self._programs) > PREPARED:
                self._programs.popitem(last=False)
        return known


class Queries(Protocol):
    """What a prepared rule is run by: `Database` is one."""

    @property
    def query(self) -> Callable[..., pa.Table]: ...

    @property
    def stream(self) -> Callable[..., Iterator[pa.RecordBatch]]: ...

    @property
    def count(self) -> Callable[..., int]: ...

    @property
    def explain(self) -> Callable[..., Explanation]: ...


class PreparedRule:
    """A program to be run many times: made by `Database.prepare`.

    It is parsed once, and checked and planned once for the types of its parameters; the plan is kept while
    data change.  Calling it is `query`.

    Attributes:
        parameters: The names of the program's parameters.

    Examples:
        >>> import lftj
        >>> db = lftj.Database()
        >>> db.load("edge", [(1, 2), (1, 3), (2, 3)], columns=["src", "dst"])
        >>> following = db.prepare("out(b) <- edge($k, b).")
        >>> following.parameters, following(k=1).to_pylist(), following.count({"k": 2})
        (('k',), [{'b': 2}, {'b': 3}], 1)
    """

    def __init__(self, database: Queries, program: PreparedProgram, options: Mapping[str, Any]) -> None:
        self._database = database
        self._program = program
        self._options = options
        self.parameters = program.parameters

    def __repr__(self) -> str:
        return f"<prepared: {' '.join(self._program.tree.text.split())}>"

    def __call__(self, params: Mapping[str, Any] | None = None, /, **named: Any) -> pa.Table:
        """The rows of the head, with the parameters' values as a mapping or by name."""
        return self.query({**(params or {}), **named})

    def query(self, params: Mapping[str, Any] | None = None, **options: Any) -> pa.Table:
        """Like `Database.query`, whose ``order_by`` and ``limit`` it takes."""
        return self._database.query(self._program, params=params, **self._options, **options)

    def stream(self, params: Mapping[str, Any] | None = None, **options: Any) -> Iterator[pa.RecordBatch]:
        """Like `Database.stream`.

        It takes ``batch_rows``, ``order_by`` and ``limit``.
        """
        return self._database.stream(self._program, params=params, **self._options, **options)

    def count(self, params: Mapping[str, Any] | None = None) -> int:
        """Like `Database.count`."""
        return self._database.count(self._program, params=params, **self._options)

    def explain(self, params: Mapping[str, Any] | None = None, analyze: bool = False) -> Explanation:
        """Like `Database.explain`."""
        return self._database.explain(self._program, params=params, analyze=analyze, **self._options)
