"""`CsvOptions`: how a CSV file is written, where the file itself does not say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa


@dataclass(frozen=True)
class CsvOptions:
    """How a CSV file is written; what is left out is read off the file or has its usual value.

    Attributes:
        delimiter: One ASCII character between the fields.  By default a comma, in ``.tsv`` a tab, or
            ``;``, tab or ``|`` where the first lines have these alone.
        quote: One ASCII character around fields that hold delimiters or line ends; None when every
            quote is a character like others.
        header: Whether the first line holds column names.  By default it does, unless all of its fields
            are numbers.  Without a header ``columns=`` gives the names.
        types: Arrow types, or their names (``"string"``), by column; of other columns the values decide.
        nulls: Texts that stand for NULL, in columns of every type.  By default empty fields, ``NULL``,
            ``NA``, ``nan`` and the like do, in columns other than strings.
        encoding: Name of the text's encoding, as Python knows it.

    Raises ValueError for what can be no option.

    Examples:
        >>> CsvOptions(delimiter=";", types={"id": "string"}).types
        {'id': DataType(string)}
    """

    delimiter: str | None = None
    quote: str | None = '"'
    header: bool | None = None
    types: Mapping[str, pa.DataType | str] = field(default_factory=dict)
    nulls: Sequence[str] | None = None
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        for name, mark in (("delimiter", self.delimiter), ("quote", self.quote)):
            if mark is not None and not (len(mark) == 1 and mark.isascii() and mark not in "\r\n\0"):
                raise ValueError(f"{name} is {mark!r}; it can be one ASCII character")
        if self.quote is not None and self.quote == self.delimiter:
            raise ValueError(f"delimiter and quote are both {self.quote!r}: they must differ")
        if isinstance(self.nulls, str):
            raise ValueError(f"nulls is {self.nulls!r}; it can be a list of texts, as [{self.nulls!r}]")
        try:
            "".encode(self.encoding)
        except LookupError:
            raise ValueError(
                f"encoding {self.encoding!r} is not known; 'utf-8', 'latin-1', 'cp1252' are"
            ) from None
        object.__setattr__(
            self, "types", {name: _arrow_type(name, given) for name, given in self.types.items()}
        )


def _arrow_type(column: str, given: pa.DataType | str) -> pa.DataType:
    """
    >>> _arrow_type("price", "decimal128(9, 2)")
    Decimal128Type(decimal128(9, 2))
    """
    if isinstance(given, pa.DataType):
        return given
    name, _, sizes = given.partition("(")
    if name in ("decimal", "decimal128", "decimal256") and sizes.endswith(")"):
        make = pa.decimal256 if name == "decimal256" else pa.decimal128
        try:
            return make(*(int(size) for size in sizes[:-1].split(",")))
        except (TypeError, ValueError):
            pass
    try:
        return pa.type_for_alias(given)
    except ValueError:
        raise ValueError(
            f"type {given!r} of column {column!r} is not known; 'int64', 'double', 'string', 'date32',"
            " 'timestamp[us]' and 'decimal128(9, 2)' are"
        ) from None
