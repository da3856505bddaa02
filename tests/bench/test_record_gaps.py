"""The benchmark of the widths of record_gap: one row each, and what a wider gap must show."""

from __future__ import annotations

from bench import record_gaps


def test_a_wider_gap_has_fewer_records_and_no_fewer_operations() -> None:
    question = record_gaps._Question("small", "h(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).", 6, 20)
    rows = list(record_gaps.measure(question))
    assert [row[1].partition(",")[0] for row in rows] == [str(gap) for gap in record_gaps.GAPS]
    records = [int(row[2].replace(",", "")) for row in rows]
    assert records == sorted(records, reverse=True) and records[0] > records[-1]
    assert float(rows[0][5]) <= float(rows[-1][5])
