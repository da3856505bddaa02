"""What is inserted is what a column has then, or it is refused: the matrix of Arrow types, and ways in.

The oracle knows values as fractions of a kind, and which fractions a type holds; it asks nothing of the
engine or of pyarrow's casts.
"""

from __future__ import annotations

import datetime
import re
import struct
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import lftj
from lftj.errors import ChangeError, DataError, SourceError
from lftj.storage.relation import Relation
from lftj.values.domains import Domains
from maintenance import Workspace
from maintenance.changes.changes import encode_rows

UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
D = Decimal


class Meaning(NamedTuple):
    """``value``: numbers and times as fractions, of seconds or days; else as Python has it."""

    kind: str
    value: Any


POOLS: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False],
    **{pa.type_for_alias(f"int{n}"): [0, 1, -1, 100, -(2 ** (n - 1)), 2 ** (n - 1) - 1] for n in (8, 16, 32)},
    **{pa.type_for_alias(f"uint{n}"): [0, 1, 100, 2**n - 1] for n in (8, 16, 32)},
    pa.int64(): [0, 1, -100, 2**24 + 1, 2**53, 2**53 + 1, 2**54, 10**10, 2**62, 2**63 - 1, -(2**63) + 1],
    pa.uint64(): [0, 100, 2**53 + 1, 2**62, 2**63 - 1],
    pa.float16(): [0.0, 1.5, -2.0, 65504.0, float("inf"), float("nan")],
    pa.float32(): [0.0, 1.5, 2.0**24, 2.0**-149, 2.0**100, float("-inf"), float("nan")],
    pa.float64(): [0.0, 1.5, 0.1, 65504.0, 65520.0, 2.0**24 + 1, 1e300, 5e-324, float("inf"), float("nan")],
    pa.decimal128(4, 2): [D("0.00"), D("1.50"), D("-99.99"), D("12.00")],
    pa.decimal128(12, 2): [D("1.50"), D("9999999999.99"), D("100.00")],
    pa.decimal128(12, 4): [D("1.5000"), D("1.2345"), D("-12345678.0000")],
    pa.decimal256(50, 3): [D("1.500"), D("1.234"), D(10**34), D(-(10**9))],
    pa.decimal128(5, -2): [D(1200), D(9999900)],
    pa.string(): ["", "a", "2026-01-31", "1"],
    pa.large_string(): ["a", "é"],
    pa.string_view(): ["a", "é" * 20],
    pa.dictionary(pa.int8(), pa.string()): ["a", "1", "1"],
    pa.binary(): [b"", b"ab", b"abc"],
    pa.large_binary(): [b"a", b"ab"],
    pa.binary(2): [b"ab", b"\x00\xff"],
    pa.binary(3): [b"abc"],
    pa.date32(): [0, 20_000, -(2**31), 2**31 - 1],
    pa.date64(): [0, 20_000, 2**31, 10**10],
    pa.time32("s"): [0, 3600],
    pa.time32("ms"): [0, 3_600_000, 1],
    pa.time64("us"): [0, 3_600_000_000, 1, 1000],
    pa.time64("ns"): [0, 1, 10**9],
    **{
        pa.timestamp(unit, zone): [0, 1, n, 86_400 * n, -n, 2**62]
        for unit, n in UNITS.items()
        for zone in (None, "UTC")
    },
    pa.timestamp("us", "Europe/Berlin"): [0, 1, 10**6],
    **{pa.duration(unit): [0, 1, n, -n, 2**62] for unit, n in UNITS.items()},
    pa.dictionary(pa.int32(), pa.int64()): [1, 300, 2**53 + 1],
    pa.dictionary(pa.int32(), pa.timestamp("us")): [0, 86_400 * 10**6],
}


def array_of(values: list[Any], type_: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(type_):
        return array_of(values, type_.value_type).dictionary_encode().cast(type_)
    if pa.types.is_date64(type_):
        return pa.array([value * 86_400_000 for value in values], pa.int64()).view(type_)
    if pa.types.is_temporal(type_):
        whole = pa.int32() if type_.bit_width == 32 else pa.int64()
        return (
            pa.array(values, whole).view(pa.timestamp(type_.unit) if is_zoned(type_) else type_).cast(type_)
        )
    return pa.array(values, type_)


def is_zoned(type_: pa.DataType) -> bool:
    return pa.types.is_timestamp(type_) and type_.tz is not None


def kind_of(type_: pa.DataType) -> str:
    if pa.types.is_dictionary(type_):
        return kind_of(type_.value_type)
    name = re.match("[a-z]+", str(type_))
    assert name is not None
    if name[0].startswith("timestamp"):
        return "instant" if type_.tz else "local time"
    return {
        "bool": "boolean",
        "uint": "integer",
        "int": "integer",
        "double": "float",
        "halffloat": "float",
        "large": str(type_).removeprefix("large_"),
        "fixed": "binary",
    }.get(name[0], name[0])


def meaning(value: Any, type_: pa.DataType) -> Meaning:
    """Of a value as the pools have them."""
    if pa.types.is_dictionary(type_):
        return meaning(value, type_.value_type)
    kind = kind_of(type_)
    if kind == "float" and (value != value or value in (float("inf"), float("-inf"))):
        return Meaning(kind, str(value))
    if kind in ("integer", "float", "decimal", "date"):
        return Meaning(kind, Fraction(value))
    if pa.types.is_temporal(type_):
        return Meaning(kind, Fraction(value, UNITS[type_.unit]))
    return Meaning(kind, value)


def holds(type_: pa.DataType, value: Any) -> bool:
    """Whether a type holds a value of its kind."""
    if pa.types.is_dictionary(type_):
        return holds(type_.value_type, value)
    kind = kind_of(type_)
    if kind == "integer":
        signed = pa.types.is_signed_integer(type_)
        bits = type_.bit_width
        return -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) if signed else 0 <= value < 2**bits
    if kind == "float":
        if isinstance(value, str):
            return True
        code = {16: "e", 32: "f", 64: "d"}[type_.bit_width]
        try:
            return Fraction(struct.unpack(code, struct.pack(code, float(value)))[0]) == value
        except OverflowError:
            return False
    if kind == "decimal":
        digits = value * Fraction(10) ** type_.scale
        return digits.denominator == 1 and abs(digits) < 10**type_.precision
    if kind == "date":
        return pa.types.is_date64(type_) or -(2**31) <= value < 2**31
    if pa.types.is_temporal(type_):
        count = value * UNITS[type_.unit]
        return count.denominator == 1 and -(2**63) < count < 2**63
    if pa.types.is_fixed_size_binary(type_) and kind == "binary":
        return len(value) == type_.byte_width
    return True


def counts_of(array: pa.Array) -> Any:
    """The one value of an array, as the pools have them."""
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    if pa.types.is_date64(array.type):
        return array.view(pa.int64())[0].as_py() // 86_400_000
    if pa.types.is_temporal(array.type):
        return array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())[0].as_py()
    return array[0].as_py()


@pytest.mark.parametrize("base", POOLS, ids=str)
def test_every_pair_of_types(base: pa.DataType) -> None:
    domains = Domains()
    schema = Relation.from_table("r", pa.table({"v": array_of(POOLS[base][:1], base)}), domains).schema
    declared = schema.columns[0].type
    for source, pool in POOLS.items():
        kinds = (kind_of(source), kind_of(base))
        may = kinds[0] == kinds[1] or kinds in (("integer", "float"), ("integer", "decimal"))
        for value in pool:
            said = f"{base} <- {source}: {value!r}"
            known = meaning(value, source)
            wanted = known._replace(kind=kinds[1]) if may else known
            if kinds == ("local time", "date"):  # of a whole day
                days = Fraction(known.value) / 86_400
                may, wanted = days.denominator == 1, Meaning("date", days)
            table = pa.table({"v": array_of([POOLS[source][0], value], source).slice(1)})
            if may and holds(base, wanted.value):
                (codes,) = encode_rows("r", schema, table, domains)
                back = declared.domain.decode(codes, declared.arrow)
                assert meaning(counts_of(back), base) == wanted, said
                continue
            with pytest.raises(DataError) as caught:
                encode_rows("r", schema, table, domains)
            message = str(caught.value)
            assert type(caught.value) is ChangeError, said
            for part in ("'r'", "'v'", "row 0 (counting from 0)", str(base)):
                assert part in message, said
            assert re.search(r"cast (it|the values) before", message), said


def test_the_first_row_that_does_not_fit_is_named() -> None:
    domains = Domains()
    schema = Relation.from_table(
        "r", pa.table({"v": pa.array([D("1.50")], pa.decimal128(4, 2))}), domains
    ).schema
    chunks = pa.chunked_array([[1, 2], [], [3, None, 250, 1000]])
    with pytest.raises(ChangeError, match=r"'v': NULL in row 3 \(counting from 0\)"):
        encode_rows("r", schema, pa.table({"v": chunks}), domains)
    with pytest.raises(
        ChangeError, match=r"row 4 \(counting from 0\): type decimal128\(4, 2\) does not hold 250 "
    ):
        encode_rows("r", schema, pa.table({"v": chunks.fill_null(0)}), domains)


def test_null_stays_null() -> None:
    domains = Domains()
    for type_, value in ((pa.float16(), 1.5), (pa.decimal128(9, 2), D("1.50")), (pa.timestamp("ns"), 0)):
        table = pa.table({"v": pa.array([value], type_)})
        schema = Relation.from_table("r", table, domains, nulls="keep").schema
        source = pa.timestamp("s") if type_ == pa.timestamp("ns") else pa.int64()
        for column in (pa.array([None, 7], pa.int64()).cast(source), pa.nulls(2)):
            (codes,) = encode_rows("r", schema, pa.table({"v": column}), domains)
            back = schema.columns[0].type.domain.decode(codes, type_)
            assert back.is_valid().to_pylist() == column.is_valid().to_pylist()


def test_null_in_a_dictionary_is_seen() -> None:
    workspace = Workspace()
    workspace.load("r", pa.table({"v": pa.array(["a"]).dictionary_encode()}))
    hidden = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["b", None]))
    with pytest.raises(ChangeError, match="NULL in row 1"), workspace.transaction() as tx:
        tx.insert("r", pa.table({"v": hidden}))


# -- ways in ----------------------------------------------------------------------------------

NOON = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
LOSSY = {
    "a time of day into dates": (pa.date32(), [datetime.datetime(2026, 1, 2, 13, 5)]),
    "a date into timestamps": (pa.timestamp("us"), [datetime.date(2026, 1, 2)]),
    "an instant into local times": (pa.timestamp("us"), [NOON]),
    "a local time into instants": (pa.timestamp("us", "UTC"), [NOON.replace(tzinfo=None)]),
    "a timestamp into times": (pa.time64("us"), [datetime.datetime(2026, 1, 2, 13, 5)]),
    "0.1 into float32": (pa.float32(), [0.1]),
    "an integer that is no float": (pa.float64(), [2**53 + 1]),
    "a decimal with more digits": (pa.decimal128(12, 2), [D("1.2345")]),
    "text into numbers": (pa.int64(), ["1"]),
}


@pytest.mark.parametrize("case", LOSSY)
@pytest.mark.parametrize("way", ["insert", "erase", "apply", "apply_many", "tuples", "columns"])
def test_every_way_in_refuses_what_would_be_lost(case: str, way: str) -> None:
    type_, values = LOSSY[case]
    workspace = Workspace()
    workspace.load("r", pa.table({"v": array_of(POOLS[type_][:1], type_)}))
    before = workspace["r"].to_arrow()
    table = pa.table({"v": pa.array(values)})
    weighed = table.append_column("weight", pa.array([1]))
    with pytest.raises(ChangeError, match=r"changes of 'r', column 'v'.*row 0.*before"):
        if way == "apply_many":
            workspace.apply_many({"r": weighed.append_column("txn", pa.array([1]))})
        with workspace.transaction() as tx:
            if way == "apply":
                tx.apply("r", weighed)
            elif way == "erase":
                tx.erase("r", table)
            elif way == "tuples":
                tx.insert("r", [(value,) for value in values])
            else:
                tx.insert("r", table if way == "insert" else {"v": values})
    assert workspace["r"].to_arrow().equals(before)


def test_instants_of_another_zone_are_the_same() -> None:
    workspace = Workspace()
    workspace.load("r", pa.table({"v": pa.array([0], pa.timestamp("us", "UTC"))}))
    berlin = pa.array([NOON], pa.timestamp("s", "Europe/Berlin"))
    with workspace.transaction() as tx:
        tx.insert("r", pa.table({"v": berlin}))
    assert (NOON,) in workspace["r"]
    with workspace.transaction() as tx:
        tx.erase("r", [(NOON.astimezone(datetime.timezone(datetime.timedelta(hours=-5))),)])
    assert len(workspace["r"]) == 1


def test_whole_numbers_into_decimals() -> None:
    workspace = Workspace()
    workspace.load("r", pa.table({"p": pa.array([D("1.50")], pa.decimal128(12, 2))}))
    with workspace.transaction() as tx:
        tx.insert("r", [(1,), (-9_999_999_999,)])
        tx.insert("r", [(D("2.5"),), (3,)])
    assert sorted(workspace["r"]) == [(D(n),) for n in ("-9999999999", "1", "1.5", "2.5", "3")]
    too_large = r"column 'p', row 1 \(counting from 0\): type decimal128\(12, 2\) does not hold 10000000000 "
    with pytest.raises(ChangeError, match=too_large), workspace.transaction() as tx:
        tx.insert("r", [(7,), (10_000_000_000,)])
    assert sorted(workspace.query("h(p) <- r(p), p >= 2, p != 3.").to_pydict()["p"]) == [D("2.50")]
    assert workspace.count("h(p) <- r(p), p = 3.") == 1
    assert workspace.query("h(q) <- r(p), q = p + 1, p < 0.").to_pydict()["q"] == [D("-9999999998")]


# -- Python's values --------------------------------------------------------------------------

DAY, MOMENT = datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 2, 13, 5)
MIXED = {
    "a timestamp behind a date": [DAY, MOMENT],
    "a date behind a timestamp": [MOMENT, DAY],
    "an instant behind a local time": [MOMENT, NOON],
    "a local time behind an instant": [NOON, MOMENT],
    "NULL before them": [None, DAY, MOMENT],
    "a boolean among numbers": [0.5, True],
    "a number behind a date": [DAY, 5],
    "a number behind a timestamp": [MOMENT, 5],
    "binary behind text": ["a", b"x"],
    "a time with a zone": [datetime.time(1, tzinfo=datetime.UTC)],
    "an integer that is no float": [0.5, 2**53 + 1],
}


@pytest.mark.parametrize("case", MIXED)
@pytest.mark.parametrize("form", ["tuples", "columns", "numpy", "pandas"])
def test_columns_of_several_kinds_are_refused_at_load(case: str, form: str) -> None:
    values: list[Any] = MIXED[case]
    database = lftj.Database()
    source: Any = [(value,) for value in values]
    if form == "columns":
        source = {"v": values}
    elif form == "numpy":
        numpy = pytest.importorskip("numpy")
        source = {"v": numpy.array(values, dtype=object)}
    elif form == "pandas":
        pandas = pytest.importorskip("pandas")
        source = pandas.DataFrame({"v": pandas.Series(values, dtype=object)})
    with pytest.raises(SourceError, match=r"column '?v'?"):
        database.load("r", source, **({"columns": ["v"]} if form == "tuples" else {}), nulls="keep")
    assert "r" not in database


def test_nanoseconds_of_pandas_are_not_lost() -> None:
    pandas = pytest.importorskip("pandas")
    database = lftj.Database()
    database.load("r", [(pandas.Timestamp(1000),), (MOMENT,)], columns=["v"])
    assert len(database["r"]) == 2
    for value in (pandas.Timestamp(1), pandas.Timedelta(1)):
        with pytest.raises(SourceError, match=r"row 0 \(counting from 0\) is Time.* not hold exactly"):
            database.load("r", [(value,)], columns=["v"])


def test_small_floats_of_numpy_beside_integers() -> None:
    numpy = pytest.importorskip("numpy")
    database = lftj.Database()
    with pytest.raises(SourceError, match="row 0"):
        database.load("r", [(numpy.float16(0.5),), (3,)], columns=["v"])


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (pa.date32(), "2026-01-02 13:05:00"),
        (pa.timestamp("us"), "2026-01-02 12:00:00+02:00"),
        (pa.timestamp("us", "UTC"), "2026-01-02 12:00:00"),
        (pa.timestamp("s"), "2026-01-02 12:00:00.5"),
        (pa.time64("us"), "2026-01-02 13:05:00"),
        (pa.decimal128(12, 2), "1.2345"),
        (pa.int8(), "300"),
        (pa.int64(), "1.5"),
    ],
    ids=str,
)
def test_change_files_as_text(type_: pa.DataType, text: str, tmp_path: Path) -> None:
    workspace = Workspace()
    workspace.load("r", pa.table({"v": array_of(POOLS[type_][:1], type_)}))
    path = tmp_path / "changes.csv"
    path.write_text(f"v,weight\n{text},1\n")
    with pytest.raises(DataError, match="'v'"), workspace.transaction() as tx:
        tx.apply("r", path)
    assert len(workspace["r"]) == 1
