"""Sources: whatever a user holds data in, as a pyarrow Table.

Invariants

1. The table has at least one column, and no two columns share a name.
2. What can't be read raises one :class:`~lftj.errors.SourceError` that says why,
   and where: the file and line, the column, the row (counting from 0).

3. Arrow data that others made is validated before anything reads it: offsets and
   indices that lead nowhere would end the process.

Nothing is copied that pyarrow can take as it is.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lftj.errors import SourceError
from lftj.files.arrow_files import validated
from lftj.files.csv_options import CsvOptions
from lftj.files.named_rows import named_rows
from lftj.files.python_values import array_of_objects, check_kinds
from lftj.values.kinds import INT64_RANGE
from lftj.values.shown_text import counted

if TYPE_CHECKING:
    from lftj.files.locations import LocatedFiles

_READABLE = (
    "a path, a pyarrow Table, an object with __arrow_c_stream__ (polars, pandas, DuckDB), a file object,"
    " a list of paths, a dict of columns, a numpy array, an iterable of tuples (with columns=), of dicts or"
    " of record batches, a graph of networkx or the cursor of a query"
)
_DATE_UNITS = {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s"}  # numpy's units that Arrow lacks


class RowWidthError(SourceError):
    """A row is of another width than its columns.  ``found``: the row; ``width``: its own."""

    def __init__(self, found: str, wanted: str, width: int) -> None:
        super().__init__(f"{found}; {wanted}")
        self.found = found
        self.width = width


def read_table(
    source: Any,
    columns: Sequence[str] | None = None,
    progress: bool | None = False,
    csv: CsvOptions | None = None,
) -> pa.Table:
    """Read ``source`` as a table.

    Args:
        source: Path, glob or URL (Parquet, CSV, Arrow IPC, JSON lines, lists of edges), folder of Parquet
            files, list of paths, file object; pyarrow Table, RecordBatch, RecordBatchReader, Dataset or
            Scanner, any object with ``__arrow_c_stream__``, polars LazyFrame, pandas DataFrame, mapping
            from names to columns, numpy array (structured, or of one or two dimensions), or iterable of
            tuples.
        columns: Names for data without names (tuples, plain numpy arrays, CSV without a header);
            for other sources, which columns to take, in this order.
        progress: Show a bar while a file is read.
        csv: How a CSV file is written; refused for sources of other kinds.

    Raises :class:`~lftj.errors.SourceError`.

    >>> read_table([(1, "x"), (2, "y")], columns=["number", "letter"]).to_pydict()
    {'number': [1, 2], 'letter': ['x', 'y']}
    >>> read_table({"a": [1, 2], "b": [3, 4]}, columns=["b"]).column_names
    ['b']
    """
    if isinstance(columns, str):
        columns = [columns]
    if columns is not None:
        columns = list(columns)
        _check_names(columns)
    source = gathered(source)
    named = None if _is_tabular(source) else named_rows(source)
    if named is not None:
        source = named
    found = _files_of(source)
    if found is not None:
        from lftj.files.whole_files import read_files

        table = read_files(found, columns, csv, progress)
    elif csv is not None:
        raise SourceError(f"csv= says how CSV files are written; the source is a {type(source).__name__}")
    elif isinstance(source, np.ndarray) and source.dtype.names is None:
        return _table_of_matrix(source, columns)
    elif _is_tabular(source):
        table = _validated(source, _table_of_object(source, columns))
    elif isinstance(source, Mapping):
        table = _validated(source, _table_of_columns(source))
    elif isinstance(source, np.ndarray):
        table = _table_of_columns({name: np.ravel(source[name]) for name in source.dtype.names or ()})
    elif isinstance(source, Iterable) and not isinstance(source, bytes | bytearray):
        return _table_of_rows(source, columns)
    else:
        raise SourceError(f"can't load from a {type(source).__name__}; {_READABLE} can be loaded")
    _check_names(table.column_names)
    return table if columns is None else _selected(table, columns)


def gathered(source: Any) -> Any:
    """What comes out of a generator, be it paths, tuples or record batches, as a list."""
    is_more = _is_tabular(source) or hasattr(source, "read") or hasattr(source, "fetchall")
    return list(source) if isinstance(source, Iterator) and not is_more else source


def _files_of(source: Any) -> LocatedFiles | None:
    """The files that a source stands for, None when it stands for none."""
    if isinstance(source, str | os.PathLike):
        from lftj.files.locations import find

        return find(source)
    if isinstance(source, list | tuple):
        if not source or not all(isinstance(item, str | os.PathLike) for item in source):
            return None
        from lftj.files.locations import find_all

        return find_all(source)
    if not hasattr(source, "read") or isinstance(source, type) or _is_tabular(source):
        return None
    from lftj.files.locations import LocatedFiles
    from lftj.files.stored_file import StoredFile

    name = getattr(source, "name", None)
    label = name if isinstance(name, str) else f"a {type(source).__name__}"
    try:
        content = source.read()
    except Exception as error:  # whatever the library behind the object raises
        raise SourceError(f"{label}: can't be read: {str(error).strip() or type(error).__name__}") from None
    if isinstance(content, str):
        content = content.encode()
    if not isinstance(content, bytes | bytearray | memoryview | pa.Buffer):
        raise SourceError(f"{label}: its read() gives a {type(content).__name__}, not bytes or text")
    return LocatedFiles([StoredFile.of_bytes(label, pa.py_buffer(content), by_content=True)])


def _is_tabular(source: Any) -> bool:
    if isinstance(source, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return True
    if isinstance(source, type):
        return False
    exports = any(hasattr(source, name) for name in ("__arrow_c_stream__", "__arrow_c_array__"))
    return exports or _is_lazy(source) or _is_scanned(source)


def _is_lazy(source: Any) -> bool:
    """Whether it is a polars LazyFrame."""
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(source, polars.LazyFrame)


def _is_scanned(source: Any) -> bool:
    """Whether it is a pyarrow Dataset or Scanner."""
    dataset = sys.modules.get("pyarrow.dataset")
    return dataset is not None and isinstance(source, dataset.Dataset | dataset.Scanner)


def _table_of_object(source: Any, columns: Sequence[str] | None) -> pa.Table:
    """``columns``: all that are wanted, where it is cheaper to ask for these alone."""
    if isinstance(source, pa.Table):
        return source
    try:
        if _is_lazy(source):
            known = columns is not None and set(columns) <= set(source.collect_schema().names())
            return (source.select(list(columns or ())) if known else source).collect().to_arrow()
        if _is_scanned(source):
            if not hasattr(source, "schema"):
                return source.to_table()
            known = columns is not None and set(columns) <= set(source.schema.names)
            return source.to_table(columns=list(columns or ())) if known else source.to_table()
        if type(source).__module__.partition(".")[0] == "pandas":
            return _table_of_pandas(source)
        if isinstance(source, pa.RecordBatch):
            return pa.Table.from_batches([source])
        if isinstance(source, pa.RecordBatchReader):
            return source.read_all()
        if hasattr(source, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(source).read_all()
        return pa.Table.from_batches([pa.record_batch(source)])
    except SourceError:
        raise
    except Exception as error:  # whatever the library behind the object raises
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise SourceError(f"can't read the {type(source).__name__} as a table: {reason}") from None


def _table_of_pandas(source: Any) -> pa.Table:
    """A frame with the levels of its index that have names; others number rows and are left out."""
    named = [name for name in source.index.names if name is not None]
    _check_names([str(name) for name in [*named, *source.columns]])
    if named:
        source = source.reset_index(level=named)
    for name in source.columns:
        if source[name].dtype == object:
            values = source[name]
            try:
                check_kinds(values[values.notna()].tolist())
            except ValueError as error:
                raise SourceError(f"column {str(name)!r}: {error}") from None
    # By its own __arrow_c_stream__ a filtered frame would bring its index as one more column.
    return pa.Table.from_pandas(source, preserve_index=False)


def _validated(source: Any, table: pa.Table) -> pa.Table:
    try:
        return validated(table)
    except ValueError as error:
        raise SourceError(f"can't read the {type(source).__name__} as a table: {error}") from None


def _table_of_columns(source: Mapping[Any, Any]) -> pa.Table:
    arrays = {}
    for name, values in source.items():
        if not isinstance(name, str):
            raise SourceError(f"a column's name is {name!r}; names are strings")
        arrays[name] = _array(name, values)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name!r} has {length:,}" for name, length in lengths.items())
        raise SourceError(f"columns differ in their number of values: {shown}")
    return pa.table(arrays)


def _table_of_matrix(source: np.ndarray, columns: Sequence[str] | None) -> pa.Table:
    if source.ndim not in (1, 2):
        raise SourceError(f"a numpy array of {source.ndim} dimensions is no table; one or two dimensions are")
    matrix = source[:, np.newaxis] if source.ndim == 1 else source
    names = _given_names(columns, matrix.shape[1], "a numpy array")
    if len(names) != matrix.shape[1]:
        raise SourceError(f"columns= names {len(names)} columns, the numpy array has {matrix.shape[1]}")
    return _table_of_columns({name: matrix[:, place] for place, name in enumerate(names)})


def _table_of_rows(source: Iterable[Any], columns: Sequence[str] | None) -> pa.Table:
    rows = source if isinstance(source, list) else list(source)
    width = len(rows[0]) if rows and _is_row(rows[0]) else 2
    names = _given_names(columns, width, "an iterable of tuples")
    for number, row in enumerate(rows):
        if not _is_row(row):
            hint = f": write ({row!r},)" if len(names) == 1 else ""
            raise SourceError(f"row {number} (counting from 0) is {_short(row)}, not a tuple{hint}")
        if len(row) != len(names):
            raise RowWidthError(
                f"row {number} (counting from 0) has {counted(len(row), 'value')}, {_short(row)}",
                f"columns= names {counted(len(names), 'column')}",
                len(row),
            )
    values = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return pa.table({name: _array(name, column) for name, column in zip(names, values, strict=True)})


def _is_row(row: Any) -> bool:
    if type(row) in (tuple, list):
        return True
    unlike = isinstance(row, str | bytes | bytearray | Mapping)
    return not unlike and hasattr(row, "__len__") and hasattr(row, "__getitem__")


def _given_names(columns: Sequence[str] | None, width: int, what: str) -> Sequence[str]:
    if columns is None:
        example = ["src", "dst", "weight"][:width] if width <= 3 else ["a", "b", "..."]
        raise SourceError(f"{what} has no column names: give them, as in columns={example}")
    return columns


def _array(name: str, values: Any) -> pa.Array | pa.ChunkedArray:
    """One column's values in Arrow."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise SourceError(f"column {name!r} is {_short(values)}, not a list or array of values")
    try:
        if isinstance(values, np.ndarray) and values.dtype == object:
            values = values.tolist()
        if isinstance(values, list | tuple):
            if not values or set(map(type, values)) != {int}:
                return array_of_objects(values)
            values = np.array(values, dtype=np.int64)
        if isinstance(values, np.ndarray):
            return array_of_numpy(_arrow_ready(values))
        if hasattr(values, "__arrow_c_stream__") and type(values).__module__.partition(".")[0] != "pandas":
            return pa.chunked_array(values)
        return array_of_objects(list(values)) if not hasattr(values, "__len__") else pa.array(values)
    except OverflowError:
        raise SourceError(f"column {name!r}: {too_large(values)}") from None
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SourceError(f"column {name!r}: {str(error).strip().partition(chr(10))[0]}") from None


def too_large(values: Iterable[Any], width: int = 1) -> str:
    """That an integer is, the first of them, and the way out; ``width``: how many of the values are a row."""
    message = "an integer doesn't fit 64 bits with a sign"
    for place, value in enumerate(values):
        if isinstance(value, int) and value not in INT64_RANGE:
            message += f"; row {place // width} (counting from 0) has {_short(value)}: make decimals of the"
            return f"{message} column's values, decimal.Decimal(value), or floats"
    return message


def array_of_numpy(values: np.ndarray) -> pa.Array:
    """A numpy array's values in Arrow; numbers are shared and not copied, where they lie side by side."""
    plain = type(values) is np.ndarray and values.ndim == 1 and values.dtype.kind in "iuf"
    if not plain or values.dtype.itemsize > 8:
        return pa.array(values)
    # from_buffers and not pa.array: that would import pandas, where there is one, to look at the type.
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def _arrow_ready(values: np.ndarray) -> np.ndarray:
    """The same values in the machine's byte order and in a unit of time that Arrow has."""
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    if values.dtype.kind in "mM":
        unit = np.datetime_data(values.dtype)[0]
        if values.dtype.kind == "M" and unit in _DATE_UNITS:
            values = values.astype(f"datetime64[{_DATE_UNITS[unit]}]")
        elif values.dtype.kind == "m" and unit in ("W", "D", "h", "m"):
            values = values.astype("timedelta64[s]")
    return values


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise SourceError("there are no columns")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise SourceError(f"two columns are named {name!r}: names must differ")
        seen.add(name)


def _selected(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    for name in columns:
        if name not in table.column_names:
            near = difflib.get_close_matches(name, table.column_names, n=1)
            hint = (
                f"; did you mean {near[0]!r}?"
                if near
                else f"; there are {', '.join(map(repr, table.column_names))}"
            )
            raise SourceError(f"there is no column {name!r}{hint}")
    return table.select(list(columns))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
