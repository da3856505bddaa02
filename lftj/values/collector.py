"""The collector: dictionaries give back the codes of values that nobody holds any more.

Codes stand in many arrays, and few of them know when they go.  So nothing is counted: from time
to time all that *holds* codes is walked, some hundred codes at a time, while commits go on, and
the values that are met move to a fresh table (:mod:`lftj.values.interner`).  When everything was
walked that table takes the place of the old one; the codes of values that did not move are free::

    begin        walk, in pieces                                         end
    |            holders: versions of relations, supports, changes        |
    |------------------------------------------------------------------->|
     meanwhile a value stays if it is encoded, or comes to a new holder

What holds codes for longer than one operation is a :class:`Holder` and says so when it is made
(:meth:`Collector.hold`): relations and their versions, support counts, changes of heads that nobody has
decoded yet.  A snapshot, a subscriber or a table that a user has keeps its versions, and
so their values.  An operation that has encoded values and holds their codes where nobody sees
them, a transaction or a query, has a :class:`Lease` meanwhile.

Invariants

1. A code that a living holder has keeps its value: the holder was there when the walk began, or came
   later and its codes were kept then.  One that is made of another and a change, a version of the one before,
   brings the change only.  What changes in place gets no codes but those that another holder
   has, or that were encoded since.
2. No walk ends while a lease is alive that is older than the walk.
3. What has entries by code (:class:`~lftj.values.dictionary.CodeTable`) has none of a code that is free.
4. Codes that are kept for no result's sake (records of searches, groups that are gone, tuples whose weights
   cancel) may be free, and may come to mean another value: they say where to look, not what is there.
5. Whoever is interrupted leaves a walk that goes on where it was, or does a piece again.

Cost: nothing while no values come.  A walk begins when a dictionary has got half as many values as
it had after the last one (1,024 at least), before the first one since rules were installed, or one for
every 16 codes that were walked then; dictionaries that have got fewer than one value for every 16 that
they have are left out of it.
:meth:`Collector.advance` walks ``LEAST`` codes, and for each value that came since it was called last
``PACE``, of more than ``MOST`` in all ``LEAST_PACE``; a code costs a look-up, and its first sight a copy of
the value.
Memory: the values twice while a walk is on, and the versions that were there when it began until
they are walked.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

LEAST = 256
PACE = 32
LEAST_PACE = 4
MOST = 1 << 16
LEAST_ADDED = 1 << 10
WALKED_PER_ADDED = 16


Coded: TypeAlias = Sequence[tuple[object, np.ndarray]]
"""Columns of codes, with their domains, which are known by their identity."""


class Held(NamedTuple):
    """Something immutable that holders share, known by its identity, and its columns of codes."""

    part: object
    columns: Coded


class Holder(Protocol):
    """What holds codes."""

    def held(self) -> Iterable[Held]:
        """All its codes of domains that have a dictionary.  A part is walked once, whoever has it."""


class Dictionary(Protocol):
    """What the collector asks of a domain that has a dictionary."""

    @property
    def n_values(self) -> int: ...

    @property
    def n_added(self) -> int: ...

    @property
    def is_nearly_full(self) -> bool: ...

    def begin(self) -> np.ndarray: ...

    def keep(self, codes: np.ndarray, first: int, last: int) -> int: ...

    def end(self) -> None: ...


class Lease:
    """As long as it lives no code becomes free that was there when it was made."""

    __slots__ = ("__weakref__",)


class _Size(NamedTuple):
    """Of a dictionary, when the last walk ended, or when it was settled."""

    n_values: int = 0
    n_added: int = 0
    was_walked: bool = False


class _Walk:
    """A walk on its way."""

    def __init__(self, dictionaries: list[Dictionary], holders: list[Holder], leases: list[Lease]) -> None:
        self.dictionaries = dictionaries
        self.leases = [weakref.ref(lease) for lease in leases]
        self.holders = holders  # those not walked
        self.columns: list[tuple[Dictionary, np.ndarray]] = [(d, d.begin()) for d in dictionaries]
        self.place = 0  # in the last one of the columns
        self.n_walked = 0
        self._parts: dict[int, weakref.ref[object]] = {}  # those seen, by identity

    def make(self, n_codes: int) -> bool:
        """Walk so many codes, or as many as there are; whether nothing is left."""
        end = self.n_walked + n_codes
        while self.n_walked < end:
            if self.columns:
                dictionary, codes = self.columns[-1]
                place = min(len(codes), self.place + end - self.n_walked)
                dictionary.keep(codes, self.place, place)
                self.n_walked += place - self.place
                self.place = place
                if place == len(codes):
                    self.place = 0
                    self.columns.pop()
            elif self.holders:
                self._open(self.holders[-1])
                self.n_walked += 1
            else:
                return all(lease() is None for lease in self.leases)
        return False

    def keep(self, columns: Coded) -> None:
        """Have the values of some columns' codes stay."""
        for dictionary, codes in self._mine(columns):
            dictionary.keep(codes, 0, len(codes))

    def _open(self, holder: Holder) -> None:
        """Take up what is new of the last holder."""
        new = [held for held in holder.held() if not self._is_known(held.part)]
        self.columns = self._mine([column for held in new for column in held.columns])
        self._parts.update((id(held.part), weakref.ref(held.part)) for held in new)
        self.holders.pop()

    def _mine(self, columns: Coded) -> list[tuple[Dictionary, np.ndarray]]:
        """Those of the walk's dictionaries."""
        mine = {id(dictionary): dictionary for dictionary in self.dictionaries}
        return [(mine[id(domain)], codes) for domain, codes in columns if id(domain) in mine]

    def _is_known(self, part: object) -> bool:
        known = self._parts.get(id(part))
        return known is not None and known() is part


class Collector:
    """That of the domains of one database.

    >>> import pyarrow as pa
    >>> from lftj.values.domains import Domains
    >>> domains = Domains()
    >>> string = domains.of(pa.string())
    >>> lease = domains.collector.lease()
    >>> codes = string.encode(pa.array([f"value {i}" for i in range(2000)]))
    >>> domains.collector.advance(), domains.collector.advance(), string.n_values
    (None, None, 2000)
    >>> del codes, lease
    >>> domains.collector.advance(), string.n_values
    (None, 0)
    """

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._dictionaries: tuple[weakref.ref[Dictionary], ...] = ()
        self._holders: weakref.WeakSet[Holder] = weakref.WeakSet()
        self._leases: weakref.WeakSet[Lease] = weakref.WeakSet()
        self._walk: _Walk | None = None
        self._sizes: weakref.WeakKeyDictionary[Dictionary, _Size] = weakref.WeakKeyDictionary()
        self._n_walked = 0  # in the last walk
        self._n_added = 0  # when it was called last

    def __getstate__(self) -> dict[str, object]:
        """For an image (:mod:`maintenance.image`): dictionaries and holders come again by themselves."""
        return {"_walk": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        self._start()

    def add(self, dictionary: Dictionary) -> None:
        """Collect what a dictionary does not need, as long as it lives."""
        with self._lock:
            living = (each for each in self._dictionaries if each() is not None)
            self._dictionaries = (*living, weakref.ref(dictionary))

    def _living(self) -> list[Dictionary]:
        return [one for each in self._dictionaries if (one := each()) is not None]

    def settle(self, dictionary: Dictionary) -> None:
        """All values of a dictionary are held now: a walk for its sake comes when half as many more have."""
        self._sizes[dictionary] = _Size(dictionary.n_values, dictionary.n_added)

    def settle_new(self) -> None:
        """The same of all dictionaries that were never walked: what was loaded and installed holds them."""
        with self._lock:
            for dictionary in self._living():
                if self._walk is None and not self._sizes.get(dictionary, _Size()).was_walked:
                    self.settle(dictionary)

    def hold(self, holder: Holder, came: Coded | None = None) -> None:
        """From now on, and as long as it lives, the holder's codes keep their values.

        ``came``: those that no holder has of which it is made; by default all.  O(``came``) during a walk.
        """
        with self._lock:
            self._holders.add(holder)
            if self._walk is not None:
                if came is None:
                    came = [column for held in holder.held() for column in held.columns]
                self._walk.keep(came)

    def lease(self) -> Lease:
        """From now on, and as long as the lease lives, all codes keep their values."""
        lease = Lease()
        with self._lock:
            self._leases.add(lease)
        return lease

    def advance(self) -> None:
        """Walk a piece, if there is something to do; one thread at a time."""
        dictionaries = self._living()
        n_added = sum([dictionary.n_added for dictionary in dictionaries])
        if self._walk is None:
            came, self._n_added = n_added - self._n_added, n_added
            if not came or not any(map(self._is_due, dictionaries)):
                return
            walked = [one for one in dictionaries if self._is_due(one) or self._is_worth_it(one)]
            with self._lock:
                self._walk = _Walk(walked, list(self._holders), list(self._leases))
        came, self._n_added = n_added - self._n_added, n_added
        if self._walk.make(LEAST + max(LEAST_PACE * came, min(PACE * came, MOST))):
            self._end(self._walk)

    def sweep(self) -> None:
        """Walk all that there is, so that every value that nobody holds is given back; as :meth:`advance`.

        O(codes).  While a lease is alive nothing is given back; then the next pieces end the walk.
        """
        for _ in range(2):  # one that is on may have met what has gone since
            if self._walk is None:
                with self._lock:
                    self._walk = _Walk(self._living(), list(self._holders), list(self._leases))
            if not self._walk.make(1 << 62):
                return
            self._end(self._walk)

    def _is_due(self, dictionary: Dictionary) -> bool:
        size = self._sizes.get(dictionary) or _Size()
        enough = max(LEAST_ADDED, size.n_values // 2, self._n_walked // WALKED_PER_ADDED)
        return dictionary.n_added - size.n_added >= enough or dictionary.is_nearly_full

    def _is_worth_it(self, dictionary: Dictionary) -> bool:
        """Whether it has got so many values that it is walked with those that are due."""
        size = self._sizes.get(dictionary) or _Size()
        return (dictionary.n_added - size.n_added) * WALKED_PER_ADDED >= dictionary.n_values

    def _end(self, walk: _Walk) -> None:
        with self._lock:
            while walk.dictionaries:
                dictionary = walk.dictionaries[-1]
                dictionary.end()
                self._sizes[dictionary] = _Size(dictionary.n_values, dictionary.n_added, True)
                walk.dictionaries.pop()
            self._n_walked = walk.n_walked
            self._walk = None
