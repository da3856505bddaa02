"""Versions of a relation: what a reader holds while commits go on (docs/design/engine.md section 2).

Invariants

1. A version never changes; a reader that holds one sees the same tuples for ever.
2. All indices of a version hold the same tuples (those on which their ``equal``
   columns agree), of a wide relation the columns that were asked for and the row's code:
   :meth:`RelationVersion.advance` steps them together, and an index
   that is asked for and not there is built from the version's tuples.
3. The next version is without those that nobody has asked for in so long that to build them
   again costs less (:mod:`lftj.storage.upkeep`), unless they are held; versions that are there keep what they
   have.

Cost: a step costs O(m log m) per index for m changed tuples, plus the amortised
merges of :mod:`lftj.storage.index_version`.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from indices.housekeeping import housekeeping
from lftj.errors import NullError
from lftj.process import debug
from lftj.storage.catalog import IndexKey, SearchView
from lftj.storage.first_tuples import first_tuples
from lftj.storage.index_version import IndexVersion, base_columns
from lftj.storage.net_weights import changing, present
from lftj.storage.relation import Relation
from lftj.storage.second_rows import keyed_schema, refuse_second_rows
from lftj.storage.signed_rows import Columns, net_rows, table_of
from lftj.storage.sorting import sort_distinct
from lftj.storage.time_range import rows_between
from lftj.storage.trie import Trie
from lftj.storage.upkeep import STEP_ROWS, Upkeep
from lftj.storage.wide_columns import WideColumns
from lftj.values.collector import Held
from lftj.values.domain import NAN_CODE
from lftj.values.schema import Schema
from lftj.values.streams import Stream


class RelationVersion:
    """One version of a relation.

    >>> from lftj.values.domains import Domains
    >>> import pyarrow as pa
    >>> edge = Relation.from_table("edge", pa.table({"a": [1, 2], "b": [5, 6]}), Domains())
    >>> first = RelationVersion(edge)
    >>> second = first.advance([np.array([1, 3]), np.array([5, 5])], np.array([-1, 1]))
    >>> first.relation().to_table().to_pylist()
    [{'a': 1, 'b': 5}, {'a': 2, 'b': 6}]
    >>> second.relation().to_table().to_pylist()
    [{'a': 2, 'b': 6}, {'a': 3, 'b': 5}]
    """

    def __init__(self, relation: Relation) -> None:
        """The first version: the tuples of a relation."""
        schema, primary = relation.schema, relation.schema.identity
        self._start(relation.name, schema, primary, np.array(primary, np.int64), relation, {}, Upkeep())
        self.index(primary)
        if schema.kept_levels:
            self.hold(())
        for levels in schema.kept_levels:
            self.index_at((levels, ()))  # no commit is to wait for it
        schema.hold(self, relation.codes)

    @classmethod
    def of_sorted(
        cls, name: str, schema: Schema, order: tuple[int, ...], columns: Sequence[np.ndarray]
    ) -> RelationVersion:
        """A first version of a head, from distinct tuples that are sorted by a permutation of the columns.

        ``columns``: int64, in the order of the permutation; they are copied.
        """
        columns = [*columns[:-1], columns[-1].copy()]  # what a trie does not copy: its last level
        version = cls.__new__(cls)
        first = IndexVersion(Trie.from_sorted(columns), searched=False)
        version._start(name, schema, order, np.array(order, np.int64), None, {(order, ()): first}, Upkeep())
        schema.hold(version)
        return version

    def _start(
        self,
        name: str,
        schema: Schema,
        primary: tuple[int, ...],
        order: np.ndarray,
        relation: Relation | None,
        indices: dict[IndexKey, IndexVersion],
        upkeep: Upkeep,
    ) -> None:
        self.name = name
        self.schema = schema
        self._primary = primary
        self._order = order  # the same as an array
        self._lock = threading.Lock()
        self._relation = relation
        self._indices = indices
        self._upkeep = upkeep
        self._read_columns: tuple[frozenset[int] | None, int, frozenset[int]] = None, 0, frozenset()
        """What columns were read when so many indices were there, and what installed rules read then."""

    def held(self) -> list[Held]:
        """The codes that are to keep their values (:mod:`lftj.values.collector`)."""
        with self._lock:
            known = dict(self._indices) if self.schema.wide else {(self._primary, ()): self.primary}
        held = []
        for (columns, _), index in known.items():
            levels = [(columns.index(n), domain) for n, domain in self.schema.dictionaries if n in columns]
            parts = [(index.base, index.base.keys), *((run, run.columns(len(columns))) for run in index.runs)]
            held += [Held(part, [(domain, keys[level]) for level, domain in levels]) for part, keys in parts]
        return held

    def __getstate__(self) -> dict[str, object]:
        """For an image (:mod:`maintenance.image`): less the relation, which the indices give again."""
        with self._lock:
            return {**self.__dict__, "_indices": dict(self._indices), "_relation": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self.schema.hold(self)

    @property
    def primary(self) -> IndexVersion:
        """The index that every version has."""
        return self._indices[self._primary, ()]

    @property
    def n_rows(self) -> int:
        return self.primary.n_tuples

    @property
    def nbytes(self) -> int:
        """Memory of all indices, and of the rows of a wide relation; versions share most of it."""
        rows = self.schema.rows.nbytes if self.schema.wide else 0
        return rows + sum(index.nbytes for index in self._indices.values())

    def relation(self) -> Relation:
        """The tuples as a relation; built by the first call after a change, O(n)."""
        with self._lock:
            if self._relation is None:
                columns: Sequence[np.ndarray]
                if self.schema.wide:
                    columns = WideColumns(self.name, self.schema, self.primary.columns()[0])
                else:
                    columns = self.columns()
                    if self._primary != self.schema.identity:
                        columns = sort_distinct(columns)
                self._relation = Relation.from_codes(self.name, self.schema, columns)
            return self._relation

    def columns(self) -> Sequence[np.ndarray]:
        """The tuples, one column per column of the schema, in the order of the primary index."""
        if self.schema.wide:
            return self.relation().codes
        sorted_columns = self.primary.columns()
        return [sorted_columns[self._primary.index(column)] for column in range(len(sorted_columns))]

    def first(self, n: int) -> Sequence[np.ndarray]:
        """The first ``n`` tuples in the order of the primary index, without adding its runs up."""
        sorted_columns = first_tuples(self.primary, n)
        if self.schema.wide:
            return WideColumns(self.name, self.schema, sorted_columns[0])
        return [sorted_columns[self._primary.index(column)] for column in range(len(sorted_columns))]

    def index(self, columns: tuple[int, ...], equal: tuple[tuple[int, int], ...] = ()) -> IndexVersion:
        """The index whose first levels are ``columns``; what else tells rows apart follows in order.

        ``equal``: only tuples whose codes agree on each pair of columns, the second of which gets no level.
        """
        return self.index_at((levels_of(columns, equal, self.schema.identity), equal))

    def index_at(self, key: IndexKey) -> IndexVersion:
        """The index with exactly these levels."""
        self._upkeep.asked(key)
        found = self._indices.get(key)
        if found is None:
            trie = self.relation().index(*key)
            if self._indices:  # the first one is the version itself
                housekeeping.built += 1
                housekeeping.rows += trie.n_tuples
            with self._lock:
                found = self._indices.setdefault(key, IndexVersion(trie))
        return found

    @property
    def key_index(self) -> IndexVersion:
        """The index that begins with the columns of the relation's key."""
        return self.index_at((self.schema.key_levels, ()))

    def with_key(self, key: Sequence[str]) -> RelationVersion:
        """The same tuples with these columns as their key.  O(n).

        Raises NullError where one of them may be NULL, KeyConflictError where two rows agree in all of them.
        """
        schema = keyed_schema(self.name, self.schema, key)
        index = self.index_at((schema.key_levels, ())).compacted()  # its base has no second rows either
        refuse_second_rows(self.name, schema, index.base)
        return self._declared(schema, index)

    def with_stream(self, stream: Stream) -> RelationVersion:
        """The same tuples as a stream.  O(n).  Raises NullError where its time may be NULL."""
        schema = self.schema.with_stream(stream)
        column = schema.columns[schema.time_number]
        if column.type.nullable:
            raise NullError(
                f"relation {self.name!r}: column {column.name!r} may be NULL, and a stream's time is not:"
                f" load it with not_null=[{column.name!r}]"
            )
        return self._declared(schema, self.index_at((schema.kept_levels[0], ())))

    def _declared(self, schema: Schema, index: IndexVersion) -> RelationVersion:
        """The same tuples with another schema, which wants an index to be kept."""
        following = RelationVersion.__new__(RelationVersion)
        with self._lock:
            known = {**self._indices, (schema.kept_levels[0], ()): index}
        following._start(self.name, schema, self._primary, self._order, None, known, self._upkeep)
        following.hold(*self._upkeep.held)
        schema.hold(following)
        return following

    def rows_between(self, low: int | None, high: int | None) -> np.ndarray:
        """The tuples of a stream with a time from ``low`` on and below ``high``; None: of no bound.

        int64 (columns that tell rows apart, n), in no order.
        """
        (levels,), identity = self.schema.kept_levels, self.schema.identity
        rows = rows_between(self.index_at((levels, ())), low, high)
        return rows[[levels.index(number) for number in identity]]

    def hold(self, keys: Collection[IndexKey], read: Collection[int] = ()) -> None:
        """Of all versions these indices, once they are there, are not given up, nor that of key or time.

        ``read``: the columns that installed rules read, by indices or otherwise.
        """
        self._upkeep.hold([*keys, *((levels, ()) for levels in self.schema.kept_levels)], read)

    def aside(self) -> RelationVersion:
        """The same tuples for who looks around: what indices it asks for, no later version of these steps."""
        return _Aside(self)

    @property
    def index_keys(self) -> frozenset[IndexKey]:
        """Of the indices that are there already."""
        with self._lock:
            return frozenset(self._indices)

    @property
    def read_columns(self) -> frozenset[int]:
        """The columns that something reads."""
        schema = self.schema
        if not schema.wide:
            return schema.identity_set
        read, n_indices, found = self._read_columns
        if read is not self._upkeep.read or n_indices != len(self._indices):
            read, keys = self._upkeep.read, self.index_keys
            found = read.union(column for columns, _ in keys for column in columns)
            self._read_columns = read, len(keys), found
        return found

    def code(self, column: int) -> None:
        """Have the values of a column in its dictionary."""
        if column not in self.read_columns:
            self.relation().code(column)

    def view(self, key: IndexKey) -> SearchView:
        """The index whose first levels are the key's columns, as searches read it."""
        return self.index(*key).view

    def n_branches(self, key: IndexKey, level: int) -> int:
        """How many distinct prefixes of ``level + 1`` columns an index has."""
        return self.view(key).n_branches(level)

    @property
    def statistics_of(self) -> Trie:
        """What its statistics are kept with: the base that it has in common with versions near it."""
        return self.primary.base

    def statistics_column(self, column: int) -> tuple[np.ndarray, bool]:
        """The base's codes of a column, and whether they are sorted."""
        with self._lock:
            known = [
                (self._primary, self.primary),
                *((key[0], index) for key, index in self._indices.items()),
            ]
        for columns, index in known:
            if column in columns:
                level = columns.index(column)
                return base_columns(index.base)[level], level == 0
        return self.relation().codes[column], False

    def refuse_nan(self, column: int) -> None:
        """Raise :class:`~lftj.errors.NanError` if the column holds NaN, the largest of all codes."""
        if self.schema.columns[column].type.domain.name != "float":
            return
        ranges = self.primary.view.rooted.key_ranges
        if self.schema.wide or ranges[self._primary.index(column)][1] == NAN_CODE:  # or had one
            self.relation().refuse_nan(column)

    def refuse_null(self, column: int) -> None:
        """Raise :class:`~lftj.errors.NullError` if a column of a wide relation holds NULL that must not."""
        if self.schema.wide and column not in self.read_columns:
            self.relation().refuse_null(column)

    def check_functional(self) -> None:
        """Raise :class:`~lftj.errors.FunctionalConflictError` if the last column is no function."""
        declared = self.schema.declared
        if self.index(declared).view.rooted.max_fanouts[len(declared) - 1] > 1:  # or had more
            self.relation().check_functional()

    def weights(self, columns: Columns) -> np.ndarray:
        """1 for each of these tuples that is present, else 0."""
        rows = np.array([columns[column] for column in self._primary])
        held = np.empty(rows.shape[1], dtype=np.int64)
        present(self.primary.memory, rows, held)
        return held

    def change_by(self, columns: Columns, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What adding up to these net rows does: a tuple of positive weight is in, of negative weight is out.

        ``columns``: sorted and distinct; no weight is 0.  Returns the tuples of which that is a change, int64
        (columns, n), and 1 or -1 for each: what :meth:`advance` takes.
        """
        return changing(self.primary.memory, self._order, table_of(columns, len(weights)), weights)

    def holds(self, row: Sequence[int]) -> bool:
        """Whether a row of codes is there; O(log n) per column and run."""
        return bool(self.weights([np.array([code], np.int64) for code in row])[0])

    def advance(self, columns: Columns, weights: np.ndarray) -> RelationVersion:
        """The version after a change: sorted distinct tuples, +1 (it was absent) or -1 (it was present)."""
        if not len(weights):
            return self
        if debug.enabled:
            debug.check_rows(columns[:1] if self.schema.wide else columns, f"a change of {self.name!r}")
            debug.check_weights(self.weights(columns), weights, f"a change of {self.name!r}")
        primary, upkeep = self.primary, self._upkeep
        for key in upkeep.missing(self._indices):
            self.index_at(key)
        with self._lock:
            known = dict(self._indices)
        stepped = {}
        for key, index in known.items():
            if index is primary:
                walked = 1 if self.schema.wide else len(columns)  # of which all is checked above
                checked = _is_as_it_is(key, columns) and len(key[0]) == walked
                stepped[key] = index.advance(*index_change(key, columns, weights), checked=checked)
            elif upkeep.is_too_much(key, index):
                housekeeping.given_back += 1
            else:
                moved = housekeeping.rows
                stepped[key] = index.advance(*index_change(key, columns, weights))
                upkeep.paid(key, STEP_ROWS + len(weights) + housekeeping.rows - moved)
        following = RelationVersion.__new__(RelationVersion)
        following._start(self.name, self.schema, self._primary, self._order, None, stepped, upkeep)
        self.schema.hold(following, columns)
        return following

    def compacted(self) -> RelationVersion:
        """The same tuples, the runs of every index merged into its base.  O(n) for each that has some."""
        with self._lock:
            known = dict(self._indices)
        merged = {key: index.compacted() for key, index in known.items()}
        following = RelationVersion.__new__(RelationVersion)
        following._start(self.name, self.schema, self._primary, self._order, None, merged, self._upkeep)
        self.schema.hold(following)
        return following

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module header."""
        rows = np.array(list(self.columns()))
        if self.schema.key:
            refuse_second_rows(self.name, self.schema, self.key_index.base)
            refuse_second_rows(self.name, self.schema, self.key_index.compacted().base)
        for (columns, equal), index in self._indices.items():
            index.check_invariants()
            agreeing = (
                rows[:, np.logical_and.reduce([rows[i] == rows[j] for i, j in equal])] if equal else rows
            )
            held = np.array(list(index.columns()))
            assert np.array_equal(np.unique(held, axis=1), np.unique(agreeing[list(columns)], axis=1))


class _Aside(RelationVersion):
    """See :meth:`RelationVersion.aside`; tries that it has built are kept with the relation."""

    def __init__(self, version: RelationVersion) -> None:
        self._version = version
        with version._lock:
            known = dict(version._indices)
        self._start(version.name, version.schema, version._primary, version._order, None, known, Upkeep())

    def relation(self) -> Relation:
        return self._version.relation()


def levels_of(
    columns: tuple[int, ...], equal: tuple[tuple[int, int], ...], identity: Iterable[int]
) -> tuple[int, ...]:
    """All columns of an index that starts with ``columns``, in order.

    ``identity``: columns that tell rows apart (:attr:`lftj.values.schema.Schema.identity`).

    >>> levels_of((2,), (), range(3)), levels_of((1,), ((0, 2),), range(3)), levels_of((2,), (), [0])
    ((2, 0, 1), (1, 0), (2, 0))
    """
    left_out = {second for _, second in equal} | set(columns)
    return (*columns, *(column for column in identity if column not in left_out))


def index_change(key: IndexKey, columns: Columns, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A change of the relation's sorted tuples as the change of one of its indices."""
    order, equal = key
    if _is_as_it_is(key, columns):
        return table_of(columns[: len(order)], len(weights)), weights
    rows = np.array([columns[column] for column in order])
    if equal:
        agree = np.logical_and.reduce([columns[i] == columns[j] for i, j in equal])
        rows, weights = rows[:, agree], weights[agree]
    return (rows, weights) if len(weights) < 2 else net_rows(rows, weights)


def _is_as_it_is(key: IndexKey, columns: Columns) -> bool:
    """Whether an index has the relation's rows in the relation's order, the first columns of them."""
    order, equal = key
    return not equal and (order == (0,) or order == tuple(range(len(columns))))
