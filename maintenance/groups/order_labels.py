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
labels up, O(k log n) comparisons of values, in whole-array operations, and a
copy of four arrays of n numbers when k > 0.  A gap that is used up renumbers all
values, O(n); that takes log2(SPACING) values at least, each of them in the gap
that the one before has left.

Departure from ILFTJ, whose values are in order by themselves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from indices.housekeeping import housekeeping
from lftj.values.dictionary import DictionaryDomain
from lftj.values.domain import Domain

SPACING = 1 << 40
"""The distance of neighbouring labels, when 2**22 values or fewer are numbered at once."""

_BOUND = 1 << 62  # of labels; those numbered at once are within half of it


class _Maps(NamedTuple):
    """The same pairs of code and label twice, by code and by label: int64 arrays, replaced together."""

    codes: np.ndarray  # increasing
    labels_of_codes: np.ndarray
    labels: np.ndarray  # increasing
    codes_of_labels: np.ndarray
    generation: int


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
        nothing = np.empty(0, np.int64)
        self._maps = _Maps(nothing, nothing, nothing, nothing, 0)
        domain.serve(self)

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._domain.serve(self)

    def __len__(self) -> int:
        return len(self._maps.codes)

    @property
    def generation(self) -> int:
        """Goes up when labels that were given out have changed."""
        return self._maps.generation

    @property
    def nbytes(self) -> int:
        return 32 * len(self)

    def labels(self, codes: np.ndarray) -> np.ndarray:
        """A label for each code; new ones get theirs now.

        If ``generation`` is another one afterwards, all labels of before are void.
        """
        places = np.searchsorted(self._maps.codes, codes)
        known = np.append(self._maps.codes, 0)[places] == codes
        known &= places < len(self)
        if not known.all():
            self._maps = self._with(np.unique(codes[~known]))
            places = np.searchsorted(self._maps.codes, codes)
        return self._maps.labels_of_codes[places]

    def codes(self, labels: np.ndarray) -> np.ndarray:
        """Inverse of :meth:`labels`, for labels of this generation."""
        return self._maps.codes_of_labels[np.searchsorted(self._maps.labels, labels)]

    def forget(self, kept: np.ndarray) -> None:
        """Drop the labels of all codes but those that are ``kept``: bool, by code.  O(n)."""
        maps = self._maps
        by_code, by_label = kept[maps.codes], kept[maps.codes_of_labels]
        if not by_code.all():
            self._maps = _Maps(
                maps.codes[by_code],
                maps.labels_of_codes[by_code],
                maps.labels[by_label],
                maps.codes_of_labels[by_label],
                maps.generation,
            )

    def check_invariants(self) -> None:
        """Assert the numbered invariants of the module's header; for tests."""
        maps = self._maps
        assert len(maps.labels) == len(maps.codes)
        assert (np.diff(maps.codes) > 0).all()
        assert (np.diff(maps.labels) > 0).all()
        assert (self.codes(maps.labels_of_codes) == maps.codes).all()
        assert (np.diff(self._domain.ranks()[maps.codes_of_labels]) > 0).all()

    def _with(self, codes: np.ndarray) -> _Maps:
        """The maps with labels for codes that have none."""
        housekeeping.rows += len(self)
        codes = codes[pc.array_sort_indices(self._domain.taken(codes)).to_numpy()]
        gaps = self._gaps(codes)
        new_labels = self._between(gaps)
        old = self._maps
        codes_of_labels = np.insert(old.codes_of_labels, gaps, codes)
        if new_labels is None:
            labels = (np.arange(len(codes_of_labels)) - len(codes_of_labels) // 2) * self._step(len(codes))
            order = np.argsort(codes_of_labels)
            generation = old.generation + (len(self) > 0)
            return _Maps(codes_of_labels[order], labels[order], labels, codes_of_labels, generation)
        order = np.argsort(codes)
        places = np.searchsorted(old.codes, codes[order])
        return _Maps(
            np.insert(old.codes, places, codes[order]),
            np.insert(old.labels_of_codes, places, new_labels[order]),
            np.insert(old.labels, gaps, new_labels),
            codes_of_labels,
            old.generation,
        )

    def _gaps(self, codes: np.ndarray) -> np.ndarray:
        """How many known values are less than each of ``codes``: a binary search of all at once."""
        wanted = self._domain.taken(codes)
        low, high = np.zeros(len(codes), np.int64), np.full(len(codes), len(self))
        while (open_ := low < high).any():
            middle = (low + high) >> 1
            # Where the search is over any known value will do.
            probed = self._domain.taken(self._maps.codes_of_labels[np.minimum(middle, len(self) - 1)])
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
        labels, end = self._maps.labels, len(self)
        _, first, counts = np.unique(gaps, return_index=True, return_counts=True)
        size = np.repeat(counts, counts)
        nth = np.arange(len(gaps)) - np.repeat(first, counts) + 1
        outer = self._step(len(gaps))
        least, greatest = int(labels[0]), int(labels[-1])
        if min(_BOUND - greatest, _BOUND + least) <= outer * len(gaps):
            return None
        lower, upper = labels[np.maximum(gaps - 1, 0)], labels[np.minimum(gaps, end - 1)]
        step = (upper - lower) // (size + 1)
        if (step[(gaps > 0) & (gaps < end)] == 0).any():
            return None
        inside_or_above = np.where(gaps == end, greatest + outer * nth, lower + step * nth)
        return np.where(gaps == 0, least - outer * (size + 1 - nth), inside_or_above)

    def _step(self, more: int) -> int:
        """The distance of labels that are numbered at once, when so many more come."""
        return max(1, min(self._spacing, _BOUND // (len(self) + more)))
