"""Order labels: numbers in the order of a dictionary's values, which new values hardly ever change.

The codes of strings, binary strings and decimals are in order of appearance.
Ranks are in the order of values, but a new value moves those of all behind it.
A label keeps room: a new value gets one from the middle of the gap between its
neighbours, and the labels of others stay.

Invariants

1. Labels are strictly monotone: a smaller value has a smaller label.
2. A code keeps its label, and a label its code, as long as ``generation`` stays the same and the code has
   its value.
3. Only codes that were asked for have labels, and none whose value is gone.

Cost, for m codes of which k are new, beside n known ones: O(m log n) to look
labels up, O(k log n) comparisons of values, in whole-array operations, and what
:mod:`indices.sorted_chunks` takes for k new pairs.  A gap that is used up renumbers all
values, O(n).  Of values that come one by one, each right behind the last, or right before it, it takes
SEQUENCE and many more to use a gap up; of others about log2(SPACING) at least.

Departure from ILFTJ, whose values are in order by themselves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from indices.housekeeping import housekeeping
from indices.sorted_chunks import SortedChunks
from lftj.values.dictionary import DictionaryDomain
from lftj.values.domain import Domain

SPACING = 1 << 40
"""The distance of neighbouring labels, when 2**22 values or fewer are numbered at once."""

SEQUENCE = 1 << 10
"""Values that come one by one in order, or in the opposite one, take this part of what is left of a gap."""

_BOUND = 1 << 62  # of labels; those numbered at once are within half of it


class _Maps(NamedTuple):
    """The same pairs of code and label twice, by code and by label, replaced together."""

    labels: SortedChunks  # by code
    codes: SortedChunks  # by label
    generation: int
    last: int | None
    """The label that was given out last, if it was alone."""
    run: int
    """How many came one by one before it, each right behind the one before; negative: right before it."""


class OrderLabels:
    """Labels of the values of an unordered domain.

    >>> import pyarrow as pa
    >>> from lftj.values.domains import Domains
    >>> string = Domains().of(pa.string())
    >>> labels = OrderLabels(string, spacing=100)
    >>> labels.labels(string.encode(pa.array(["b", "d", "a"]))).tolist()
    [0, 100, -100]
    >>> labels.labels(string.encode(pa.array(["c", "d", "e"]))).tolist(), labels.generation
    ([50, 100, 200], 0)
    >>> string.decode(labels.codes(np.array([50, -100])), pa.string()).to_pylist()
    ['c', 'a']
    """

    def __init__(self, domain: Domain, spacing: int = SPACING) -> None:
        """``spacing``: the distance of neighbouring labels, at least 1."""
        if not isinstance(domain, DictionaryDomain):
            raise ValueError(f"the codes of domain {domain.name} are in order: they need no labels")
        self._domain = domain
        self._spacing = spacing
        self._maps = _Maps(SortedChunks([]), SortedChunks([]), 0, None, 0)
        domain.serve(self)

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._domain.serve(self)

    def __len__(self) -> int:
        return len(self._maps.labels)

    @property
    def generation(self) -> int:
        """Goes up when labels that were given out have changed."""
        return self._maps.generation

    @property
    def nbytes(self) -> int:
        return self._maps.labels.nbytes + self._maps.codes.nbytes

    def labels(self, codes: np.ndarray) -> np.ndarray:
        """A label for each code; new ones get theirs now.

        If ``generation`` is another one afterwards, all labels of before are void.
        """
        known = self._maps.labels.has(codes)
        if not known.all():
            self._maps = self._with(np.unique(codes[~known]))
        return self._maps.labels.values(codes)

    def codes(self, labels: np.ndarray) -> np.ndarray:
        """Inverse of :meth:`labels`, for labels of this generation."""
        return self._maps.codes.values(labels)

    def forget(self, kept: np.ndarray) -> None:
        """Drop the labels of all codes but those that are ``kept``: bool, by code.  O(n)."""
        maps = self._maps
        by_code, by_label = maps.labels.pairs(), maps.codes.pairs()
        stays = kept[by_code[0]]
        if not stays.all():
            self._maps = maps._replace(
                labels=SortedChunks.of(*by_code[:, stays]),
                codes=SortedChunks.of(*by_label[:, kept[by_label[1]]]),
            )

    def check_invariants(self) -> None:
        """Assert the numbered invariants of the module's header; for tests."""
        for pairs in self._maps[:2]:
            pairs.check_invariants()
        codes, labels = self._maps.labels.pairs()
        assert (self.codes(labels) == codes).all()
        assert len(self._maps.codes) == len(labels)
        assert (np.diff(self._domain.ranks()[self._maps.codes.pairs()[1]]) > 0).all()

    def _with(self, codes: np.ndarray) -> _Maps:
        """The maps with labels for codes that have none."""
        codes = codes[pc.array_sort_indices(self._domain.taken(codes)).to_numpy()]
        gaps = self._gaps(codes)
        labels = self._between(gaps)
        old, generation = self._maps, self.generation
        last, run = None, 0
        if labels is None:
            housekeeping.rows += len(self)
            generation += len(self) > 0
            codes = np.insert(old.codes.pairs()[1], gaps, codes)
            labels = (np.arange(len(codes)) - len(codes) // 2) * self._step(len(codes) - len(self))
            old = old._replace(labels=SortedChunks([]), codes=SortedChunks([]))
        elif len(labels) == 1:
            last, run = int(labels[0]), self._run(int(gaps[0]))
        order = np.argsort(codes)
        by_code = old.labels.with_more(codes[order], labels[order])
        return _Maps(by_code, old.codes.with_more(labels, codes), generation, last, run)

    def _gaps(self, codes: np.ndarray) -> np.ndarray:
        """How many known values are less than each of ``codes``: a binary search of all at once."""
        wanted = self._domain.taken(codes)
        low, high = np.zeros(len(codes), np.int64), np.full(len(codes), len(self))
        while (open_ := low < high).any():
            middle = (low + high) >> 1
            # Where the search is over any known value will do.
            probed = self._domain.taken(self._maps.codes.at(np.minimum(middle, len(self) - 1))[1])
            less = pc.less(probed, wanted).to_numpy(zero_copy_only=False)
            low = np.where(open_ & less, middle + 1, low)
            high = np.where(open_ & ~less, middle, high)
        return low

    def _between(self, gaps: np.ndarray) -> np.ndarray | None:
        """Labels for new values in the gaps before the known ones, spread evenly; None if there is no room.

        ``gaps``: sorted; equal ones are of values that come into one gap.
        """
        if not len(self):
            return None
        known, end = self._maps.codes, len(self)
        _, first, counts = np.unique(gaps, return_index=True, return_counts=True)
        size = np.repeat(counts, counts)
        nth = np.arange(len(gaps)) - np.repeat(first, counts) + 1
        outer = self._step(len(gaps))
        least, greatest = known.at(np.array([0, end - 1]))[0].tolist()
        if min(_BOUND - greatest, _BOUND + least) <= outer * len(gaps):
            return None
        lower = known.at(np.maximum(gaps - 1, 0))[0]
        upper = known.at(np.minimum(gaps, end - 1))[0]
        step = (upper - lower) // (size + 1)
        if len(gaps) == 1 and step[0]:
            run = self._run(int(gaps[0]))
            small = np.maximum(1, (upper - lower) // min(SEQUENCE, 2 ** max(1, abs(run))))
            step = upper - lower - small if run < 0 else small
        if (step[(gaps > 0) & (gaps < end)] == 0).any():
            return None
        inside_or_above = np.where(gaps == end, greatest + outer * nth, lower + step * nth)
        return np.where(gaps == 0, least - outer * (size + 1 - nth), inside_or_above)

    def _run(self, gap: int) -> int:
        """How long the sequence is, and in which direction, that a single value in a gap goes on with."""
        maps = self._maps
        beside = [place for place in (gap - 1, gap) if 0 <= place < len(self)]
        found = maps.codes.at(np.array(beside, np.int64))[0].tolist()
        if maps.last is None or maps.last not in found:
            return 0
        is_behind = beside[found.index(maps.last)] < gap
        return max(maps.run, 0) + 1 if is_behind else min(maps.run, 0) - 1

    def _step(self, more: int) -> int:
        """The distance of labels that are numbered at once, when so many more come."""
        return max(1, min(self._spacing, _BOUND // (len(self) + more)))
