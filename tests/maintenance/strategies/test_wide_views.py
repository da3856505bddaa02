"""oracle: partial sums beyond 64 bits, against Python's integers.

A sum that fits int64 comes out exactly, whatever the partial sums are; one that does not is refused, and
everything stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lftj import errors
from maintenance import Workspace
from support.rows import rows_of

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")

Rows = Mapping[str, set[tuple[int, int]]]

SHAPE = {"R": ("a", "b"), "S": ("a", "c"), "T": ("a", "d")}
LARGE = 2**62
SUM = "h[] = sum(b) <- R(a, b), S(a, _), T(a, _)."
GROUPS = "h[a] = sum(v) <- R(a, b), S(a, c), T(a, d), v = b * c - d."
WIDE = "partial sums have 128 bits"


def loaded(rows: Rows) -> Workspace:
    ws = Workspace()
    for name, columns in SHAPE.items():
        ws.load(name, sorted(rows[name]), columns=list(columns))
    return ws


def dense() -> dict[str, set[tuple[int, int]]]:
    """Rows of which each meets many."""
    return {name: {(a, 3 * a + i) for a in range(12) for i in range(12)} for name in SHAPE}


def kept(ws: Workspace) -> str:
    return str(ws.explain_maintenance("h"))


def assignments(rows: Rows) -> list[tuple[int, int, int, int]]:
    s, t = ({a: [y for x, y in rows[name] if x == a] for a, _ in rows[name]} for name in "ST")
    return [(a, b, c, d) for a, b in rows["R"] for c in s.get(a, []) for d in t.get(a, [])]


def fits(number: int) -> bool:
    return -(2**63) <= number < 2**63


def expected(rows: Rows, of: Callable[[int, int, int], int], grouped: bool) -> set[tuple[int, ...]] | None:
    """The head; None where a value does not fit int64, of an assignment or of a group."""
    sums: dict[tuple[int, ...], int] = {}
    for a, b, c, d in assignments(rows):
        if grouped and not (fits(b * c) and fits(of(b, c, d))):
            return None
        key = (a,) if grouped else ()
        sums[key] = sums.get(key, 0) + of(b, c, d)
    if not all(map(fits, sums.values())):
        return None
    return {(*key, value) for key, value in sums.items()}


@settings(max_examples=12)
@given(seed=st.integers(0, 2**32), grouped=st.booleans(), many=st.booleans(), begins_large=st.booleans())
def test_oracle_partial_sums_beyond_64_bits(seed: int, grouped: bool, many: bool, begins_large: bool) -> None:
    """Transactions of which some are refused, one by one or as a batch."""
    random = Random(seed)
    rows = dense()
    amounts = [s * (LARGE - i) for i in range(6) for s in (1, -1)] + [1, 2, 3]
    if begins_large:
        rows["R"] |= {(a, random.choice(amounts)) for a in (20, 21) for _ in range(8)}
    rule, of = (GROUPS, lambda b, c, d: b * c - d) if grouped else (SUM, lambda b, c, d: b)
    head = expected(rows, of, grouped)
    assert head is not None, "20 and 21 join with nothing"
    ws = loaded(rows)
    ws.install(rule, "views")
    for _ in range(4):
        changes = []
        for _ in range(random.randrange(1, 6)):
            name, amount = random.choice("RRRST"), random.choice(amounts)
            changes.append(
                (name, (random.choice((1, 20, 21)), amount if name == "R" else random.randrange(3)))
            )
        following = {name: set(rows[name]) for name in SHAPE}
        for name, row in changes:
            following[name] ^= {row}
        signed = {
            name: [(*row, 1 if row in following[name] else -1) for row in rows[name] ^ following[name]]
            for name in SHAPE
        }
        after = expected(following, of, grouped)
        try:
            if many:
                columns = {
                    name: dict(zip((*SHAPE[name], "weight"), map(list, zip(*some, strict=True)), strict=True))
                    for name, some in signed.items()
                    if some
                }
                ws.apply_many(columns)
            else:
                with ws.transaction() as tx:
                    for name, some in signed.items():
                        tx.insert(name, [row[:-1] for row in some if row[-1] > 0])
                        tx.erase(name, [row[:-1] for row in some if row[-1] < 0])
        except errors.RangeError:
            assert after is None
        else:
            assert after is not None
            rows, head = following, after
        assert set(rows_of(ws["h"].table)) == head
        ws.check_invariants()


def test_what_a_transaction_makes_large_has_128_bits_from_then_on() -> None:
    ws = loaded(dense())
    ws.install(SUM, "views")
    heard: list[int] = []
    ws.subscribe("h", lambda changes: heard.append(changes.num_rows))
    assert WIDE not in kept(ws) and "#view" in kept(ws)
    with ws.transaction() as tx:
        tx.insert("R", [(20, LARGE), (20, LARGE - 1), (20, 7)])  # which join with nothing
    assert WIDE in kept(ws) and not heard
    with ws.transaction() as tx:
        tx.erase("R", [(20, LARGE), (20, LARGE - 1)])
        tx.insert("S", [(20, 1)])
        tx.insert("T", [(20, 1)])
    assert rows_of(tx.changes["h"])[-1][-1] == 1 and heard == [2]
    ws.verify()
    ws.set_strategy("h", "delta")
    ws.set_strategy("h", "views")
    assert WIDE not in kept(ws)


def test_what_is_large_at_once_has_128_bits_at_once() -> None:
    rows = dense()
    rows["R"] |= {(1, LARGE), (1, LARGE - 1), (1, -LARGE), (1, -LARGE + 1), (20, LARGE), (20, LARGE - 1)}
    rows["R"] |= {(20, 17)}
    ws = loaded(rows)
    ws.install(SUM, "views")
    assert WIDE in kept(ws)
    assert set(rows_of(ws["h"].table)) == expected(rows, lambda b, c, d: b, False)
    ws.verify()


def test_a_sum_that_does_not_fit_is_refused_and_says_how_it_would() -> None:
    ws = loaded(dense())
    ws.install(SUM, "views")
    before = rows_of(ws["h"].table)
    for _ in range(2):
        with (
            pytest.raises(errors.RangeError, match=r"h\[\] = sum\(.*decimal128\(38, 0\)"),
            ws.transaction() as tx,
        ):
            tx.insert("R", [(1, LARGE), (1, LARGE - 1), (1, 1000)])
        assert rows_of(ws["h"].table) == before
        ws.verify()
    ws.install(SUM.replace("h[] = sum(b)", "k[] = sum(w)")[:-1] + ', w = cast(b, "decimal(38, 0)").', "delta")
    ws.uninstall("h")
    with ws.transaction() as tx:
        tx.insert("R", [(1, LARGE), (1, LARGE - 1), (1, 1000)])
    assert rows_of(ws["k"].table)[0][0] == int(before[0][0]) + (2 * LARGE + 999) * 12 * 12


def test_beyond_128_bits_is_an_error_that_rolls_back() -> None:
    rule = "h[] = sum(v) <- R(a, b), S(a, c), T(a, d), v = b * c * d."
    ws = loaded(dense())
    ws.install(rule, "views")
    before = rows_of(ws["h"].table)
    huge = [(1, LARGE), (1, LARGE - 1)]
    with (
        pytest.raises(errors.RangeError, match=r"(?s)b \* c does not fit type int64.*h\[\] = sum"),
        ws.transaction() as tx,
    ):
        for name in SHAPE:
            tx.insert(name, huge)
    assert rows_of(ws["h"].table) == before and "#view" in kept(ws)
    ws.verify()
    ws.check_invariants()


def test_averages_are_kept_without_views_then() -> None:
    """A quotient of two sums is rounded once only where both are exact."""
    ws = loaded(dense())
    ws.install("h[] = avg(b) <- R(a, b), S(a, _), T(a, _).", "views")
    assert "#view" in kept(ws)
    with ws.transaction() as tx:
        tx.insert("R", [(1, LARGE), (1, LARGE - 1), (1, 1000)])
    assert "a partial sum does not fit 64 bits" in kept(ws) and "#view" not in kept(ws)
    ws.verify()


def test_bsv_of_an_order_book() -> None:
    """Its published answer on 5,020 events is beyond int64: products of decimals are exact."""
    bids = [(i % 2, 10**9 + i, 10**4 + i) for i in range(40)]
    ws = Workspace()
    ws.load("bid", bids, columns=["broker", "volume", "price"])
    ws.install(
        'bsv[b] = sum(w) <- bid(b, v, p), bid(b, v2, p2), w = cast(v, "decimal(38, 0)") * p * v2 * p2.',
        "views",
    )
    assert "#view" in str(ws.explain_maintenance("bsv"))
    with ws.transaction() as tx:
        tx.insert("bid", [(0, 10**10, 10**5)])
        tx.erase("bid", bids[:3])
    left = [*bids[3:], (0, 10**10, 10**5)]
    turnover = {b: sum(v * p for broker, v, p in left if broker == b) for b in (0, 1)}
    assert set(rows_of(ws["bsv"].table)) == {(b, amount**2) for b, amount in turnover.items()}
    assert max(turnover.values()) ** 2 > 2**63
    ws.verify()
