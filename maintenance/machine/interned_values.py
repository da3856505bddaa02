"""Values of columns whose domains have a dictionary, as numbers: texts, binary strings, decimals.

Invariants

1. The code of a value is that of the dictionary (:mod:`lftj.values.dictionary`).  Whoever asks has a lease
   that is older, so it keeps its value as long as the lease lives (:mod:`lftj.values.collector`): a walk
   that begins later waits for the lease, and while one is on each value is told to the dictionary.
2. What was found before is forgotten with the value.

Cost: of a value that was met before a look-up in a dict, of another one a look-up in the dictionary.
Memory: ``MOST_KNOWN`` values of each column at most.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from lftj.values.collector import Collector, Lease
from lftj.values.dictionary import DictionaryDomain
from lftj.values.kinds import kind, plain_type
from lftj.values.schema import ColumnType
from lftj.values.unscaled import SCALE, VALUE_BYTES

MOST_KNOWN = 1 << 14
"""Behind so many all are forgotten."""

_EXACT = Context(prec=VALUE_BYTES * 8)

Written = Callable[[Any], bytes | None]
"""The bytes of a value in the dictionary; None where the column does not have it as it stands."""


class KnownCodes:
    """The codes of values that a column was given before.

    >>> from lftj.values.domains import Domains
    >>> code_of = KnownCodes(Domains().of(pa.string()), str, _text)
    >>> code_of("tea"), code_of("coffee"), code_of("tea"), code_of(5)
    (0, 1, 0, None)
    """

    def __init__(self, domain: DictionaryDomain, kind: type, written: Written) -> None:
        """``kind``: of values in Python."""
        self._domain = domain
        self._kind = kind
        self._written = written
        self._codes: dict[Any, int] = {}
        domain.serve(self)

    def __call__(self, value: Any) -> int | None:
        """The code of a value, which is entered where it has none; None where it is not taken."""
        if type(value) is not self._kind:
            return None
        if self._domain.is_moving:
            return self._code(value)
        try:
            code = self._codes.get(value)
        except TypeError:  # of a NaN that signals
            return None
        if code is None:
            code = self._code(value)
            if code is not None:
                if len(self._codes) >= MOST_KNOWN:
                    self._codes = {}
                self._codes[value] = code
        return code

    def _code(self, value: Any) -> int | None:
        written = self._written(value)
        return None if written is None else self._domain.code_of_bytes(written)

    def forget(self, kept: np.ndarray) -> None:
        """See :class:`~lftj.values.dictionary.CodeTable`."""
        codes = self._codes
        self._codes = {value: code for value, code in codes.items() if code < len(kept) and kept[code]}


def interning_of(type_: ColumnType) -> KnownCodes | None:
    """How values of a column are staged whose domain has a dictionary; None where they are not."""
    arrow, domain = type_.arrow, type_.domain
    if isinstance(arrow, pa.BaseExtensionType) or not isinstance(domain, DictionaryDomain):
        return None
    found = written_by(plain_type(arrow), SCALE, VALUE_BYTES)
    return None if found is None else KnownCodes(domain, *found)


def written_by(plain: pa.DataType, digits: int, n_bytes: int) -> tuple[type, Written] | None:
    """What values of a text, a binary string or a decimal are in Python, and their bytes; None of others.

    ``digits``: of decimals behind the point, in so many bytes.
    """
    name = kind(plain)
    if name == "string":
        return str, _text
    if name == "binary":
        return bytes, partial(_binary, plain.byte_width if pa.types.is_fixed_size_binary(plain) else None)
    if name == "decimal" and plain.scale <= SCALE:
        return Decimal, partial(_decimal, plain.precision, plain.scale, digits, n_bytes)
    return None


def _text(value: str) -> bytes | None:
    try:
        return value.encode()
    except UnicodeEncodeError:
        return None


def _binary(width: int | None, value: bytes) -> bytes | None:
    return value if width is None or len(value) == width else None


def _decimal(precision: int, scale: int, digits: int, n_bytes: int, value: Decimal) -> bytes | None:
    """What is written with more digits than the column has is not taken."""
    exponent = value.as_tuple().exponent
    if isinstance(exponent, str) or exponent < -scale or value.adjusted() >= min(precision - scale, SCALE):
        return None
    return int(value.scaleb(digits, _EXACT)).to_bytes(n_bytes, "little", signed=True)


class CodeLease:
    """Sees that codes keep their values which are in no version yet (:mod:`lftj.values.collector`).

    ``current``: older than all that was staged since the program was bound; None while it is not bound.
    ``others``: of what was staged before, and committed since.  ``is_needed``: whether codes have to be held
    that are staged, or that heads have.
    """

    def __init__(self, is_needed: bool) -> None:
        self.is_needed = is_needed
        self.current: Lease | None = None
        self.others: list[Lease] = []

    def take(self, collector: Collector) -> None:
        """From now on hold what is staged."""
        if self.is_needed:
            self.current = collector.lease()

    def keep(self, lease: Lease | None) -> None:
        """What was staged under a lease is committed."""
        if lease is not None and lease is not self.current:
            self.others.append(lease)

    def release(self) -> None:
        """All that was committed is in versions."""
        self.current, self.others = None, []
