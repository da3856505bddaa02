"""The domains of one database: which type's values live in which domain.

:mod:`lftj.values.whole` (integer, boolean, date, time, timestamp, duration),
:mod:`lftj.values.floating` (float) and :mod:`lftj.values.dictionary` (string,
binary, decimal: unordered), as lists have one (:mod:`lftj.values.lists`).  They are
imported when a type asks for them: dictionaries bring the compiler.
"""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa

from lftj.errors import UnsupportedTypeError
from lftj.values.collector import Collector
from lftj.values.domain import Domain
from lftj.values.kinds import plain_type

_making = threading.Lock()
"""Of two threads that ask for a new domain, both get the first one's."""


class Domains:
    """The domains of one database; dictionaries live here.

    >>> domains = Domains()
    >>> domains.of(pa.int8()) is domains.of(pa.uint32())
    True
    >>> domains.of(pa.timestamp("us")), domains.of(pa.timestamp("us", "Europe/Berlin"))
    (<Domain timestamp[us]>, <Domain timestamp[us, zone]>)
    """

    def __init__(self) -> None:
        self._by_name: dict[str, Domain] = {}
        self.collector = Collector()

    def of(self, arrow_type: pa.DataType) -> Domain:
        """The domain of a type: the same object for every type of that domain.

        Raises :class:`~lftj.errors.UnsupportedTypeError` for a type whose values can't be keys.
        """
        if isinstance(arrow_type, pa.BaseExtensionType):
            return self.of(arrow_type.storage_type)
        if pa.types.is_dictionary(arrow_type):
            return self.of(arrow_type.value_type)
        name = domain_name(arrow_type)
        with _making:
            found = self._by_name.get(name)
            if found is None:
                found = self._by_name[name] = _new_domain(name, arrow_type, self.collector)
            return found

    @property
    def nbytes(self) -> int:
        """Memory of the dictionaries, room for growth included."""
        return sum(getattr(domain, "nbytes", 0) for domain in list(self._by_name.values()))


def domain_name(arrow_type: Any) -> str:
    """Of a type that is neither dictionary-encoded nor an extension.  Raises UnsupportedTypeError."""
    types = pa.types
    if types.is_integer(arrow_type):
        return "integer"
    if types.is_boolean(arrow_type):
        return "boolean"
    if types.is_floating(arrow_type):
        return "float"
    if types.is_date(arrow_type):
        return "date"
    if types.is_time(arrow_type):
        return f"time[{arrow_type.unit}]"
    if types.is_timestamp(arrow_type):
        return f"timestamp[{arrow_type.unit}{'' if arrow_type.tz is None else ', zone'}]"
    if types.is_duration(arrow_type):
        return f"duration[{arrow_type.unit}]"
    if types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type):
        return "string"
    if types.is_binary(arrow_type) or types.is_large_binary(arrow_type) or types.is_binary_view(arrow_type):
        return "binary"
    if types.is_fixed_size_binary(arrow_type) and not types.is_decimal(arrow_type):
        return "binary"
    if types.is_decimal(arrow_type):
        # Codes hold 38 digits before the point: with this scale not one of them would be left.
        if arrow_type.scale < -37:
            raise UnsupportedTypeError(f"type {arrow_type} is not supported: its scale is below -37")
        return "decimal"
    if types.is_list(arrow_type) or types.is_large_list(arrow_type):
        return f"list[{domain_name(plain_type(arrow_type.value_type))}]"
    if types.is_null(arrow_type):
        raise UnsupportedTypeError("type null is not supported: a column without values needs a type")
    if types.is_fixed_size_list(arrow_type) or types.is_list_view(arrow_type):
        way_out = f"cast the column to {pa.list_(arrow_type.value_type)}"
        raise UnsupportedTypeError(f"type {arrow_type} is not supported: {way_out}")
    raise UnsupportedTypeError(f"type {arrow_type} is not supported: its values can't be joined on")


def _new_domain(name: str, arrow_type: Any, collector: Collector) -> Domain:
    if name == "float":
        from lftj.values.floating import FloatDomain

        return FloatDomain()
    if name in ("string", "binary", "decimal"):
        from lftj.values import dictionary

        return dictionary.new_domain(name, collector)
    if name.startswith("list"):
        from lftj.values.lists import ListDomain

        return ListDomain(name, collector)
    from lftj.values import whole

    return whole.new_domain(name, arrow_type)
