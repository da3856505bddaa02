"""oracle: messages of pgoutput as rows, against a plain reading; none that is damaged is read beyond."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest

from maintenance.sources.pgoutput import UNCHANGED, Changes, Relation, end_of, relation_of, truncated

pytestmark = pytest.mark.kernel

Value = str | int | None
Row = tuple[str, list[Value]]
HEADER = struct.pack(">cQQQ", b"w", 77, 99, 0)


def word(value: Value) -> bytes:
    if value is None:
        return b"n"
    if value == UNCHANGED:
        return b"u"
    text = str(value).encode()
    return b"t" + struct.pack(">I", len(text)) + text


def message(kind: str, oid: int, rows: list[Row]) -> bytes:
    said = [side.encode() + struct.pack(">H", len(row)) + b"".join(map(word, row)) for side, row in rows]
    return HEADER + kind.encode() + struct.pack(">I", oid) + b"".join(said)


def drawn(chosen: random.Random, width: int) -> tuple[str, list[Row]]:
    def row() -> list[Value]:
        return [chosen.choice([None, UNCHANGED, "", "é" * chosen.randrange(5), "-12"]) for _ in range(width)]

    kind = chosen.choice("IUUD")
    before = [(chosen.choice("KO"), row())] if kind == "D" or (kind == "U" and chosen.random() < 0.5) else []
    return kind, [*before, *([("N", row())] if kind != "D" else [])]


def test_rows_are_those_of_the_messages() -> None:
    chosen = random.Random(1)
    for _ in range(20):
        messages: list[bytes] = []
        wanted: dict[int, list[tuple[str, str, int, list[Value]]]] = {}
        for number in range(chosen.randrange(1, 40)):
            oid = chosen.choice([5, 2**31 + 7])
            kind, rows = drawn(chosen, 2 if oid == 5 else 3)
            messages.append(message(kind, oid, rows))
            wanted.setdefault(oid, []).extend((side, kind, number, row) for side, row in rows)
        changes = Changes(messages)
        assert changes.oids == sorted(wanted) and changes.place(0) == 77
        for oid, its in wanted.items():
            width = 2 if oid == 5 else 3
            found = changes.tuples(oid, width)
            texts = [found.texts(column).to_pylist() for column in range(width)]
            assert bytes(found.sides).decode() == "".join(side for side, *_ in its)
            assert bytes(found.kinds).decode() == "".join(kind for _, kind, *_ in its)
            assert found.messages.tolist() == [number for _, _, number, _ in its]
            for column in range(width):
                values = [row[column] for *_, row in its]
                assert texts[column] == [None if value == UNCHANGED else value for value in values]
                assert np.array_equal(
                    found.sizes[column] == UNCHANGED, [value == UNCHANGED for value in values]
                )


def test_what_is_not_whole_is_refused() -> None:
    whole = message("U", 5, [("K", ["1", None]), ("N", ["12", "abc"])])
    assert Changes([whole]).tuples(5, 2).sides.tolist() == list(b"KN")
    for size in range(26, len(whole)):
        with pytest.raises(ValueError, match="message 0 is not whole"):
            Changes([whole[:size]]).tuples(5, 2)
    chosen = random.Random(2)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[chosen.randrange(25, len(whole))] = chosen.randrange(256)
        try:
            Changes([bytes(damaged)]).tuples(5, 2)
        except ValueError:
            continue


def test_other_messages() -> None:
    columns = b"".join(struct.pack(">B3sIi", 1, b"ab\0", 23, -1) for _ in range(2))
    said = b"R" + struct.pack(">I", 9) + b"public\0item\0d" + struct.pack(">H", 2) + columns
    assert relation_of(said) == Relation(9, "public", "item", (("ab", 23, -1, True), ("ab", 23, -1, True)))
    assert truncated(b"T" + struct.pack(">IBII", 2, 0, 7, 8)) == (7, 8)
    assert end_of(HEADER + b"C" + struct.pack(">BQQQ", 0, 1, 1234, 0)) == 1234
