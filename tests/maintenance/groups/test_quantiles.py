"""oracle: quantiles by weight under changes, beside lists of values; weights that can't be taken."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lftj import errors
from maintenance import Workspace
from support.reference import quantile
from support.rows import rows_of

Row = tuple[int, str, int, int]
STRATEGIES = ("auto", "trace", "delta", "views", "recompute")
RULES = """
    low[g] = quantile(v, 0.3, w) <- r(g, v, w, _).
    high[g] = upper_quantile(v, 0.3, w) <- r(g, v, w, _).
    middle[] = quantile(v, 0.5) <- r(_, v, _, _).
"""

row = st.tuples(st.integers(0, 1), st.sampled_from("abcdéz"), st.integers(0, 4), st.integers(0, 2))


def by_hand(rows: set[Row]) -> dict[str, set[tuple[object, ...]]]:
    share = Fraction(3, 10)
    groups = {g: list(zip(*((v, w) for h, v, w, _ in rows if h == g), strict=True)) for g, *_ in rows}
    everything = [v for _, v, _, _ in rows]
    return {
        "low": {(g, quantile(list(v), list(w), share, False)) for g, (v, w) in groups.items()},
        "high": {(g, quantile(list(v), list(w), share, True)) for g, (v, w) in groups.items()},
        "middle": {(quantile(everything, [1] * len(rows), Fraction(1, 2), False),)} if rows else set(),
    }


@pytest.mark.in_turns
@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=15)
@given(data=st.data())
def test_oracle_quantiles_follow(strategy: str, data: st.DataObject) -> None:
    rows = data.draw(st.sets(row, min_size=1, max_size=20))
    ws = Workspace()
    ws.load("r", sorted(rows), columns=["g", "v", "w", "n"])
    ws.install(RULES, strategy=strategy)
    for changed in [
        set(),
        *data.draw(st.lists(st.sets(row, min_size=1, max_size=6), min_size=1, max_size=4)),
    ]:
        with ws.transaction() as tx:
            tx.erase("r", sorted(rows & changed))
            tx.insert("r", sorted(changed - rows))
        rows ^= changed
        assert {name: set(rows_of(ws[name].table)) for name in ws.heads} == by_hand(rows)
        ws.check_invariants()
    ws.verify()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_weight_that_cannot_be_taken_is_rolled_back(strategy: str) -> None:
    ws = Workspace()
    ws.load("r", [(1, 10 * n, n % 4) for n in range(40)], columns=["g", "v", "w"])
    ws.install("h[g] = upper_quantile(v, 0.25, w) <- r(g, v, w).", strategy=strategy)
    before = rows_of(ws["h"].table)
    with (
        pytest.raises(
            errors.EvaluationError, match=r"h\[1\] = upper_quantile\(v, 0.25, w\): -7 is no weight"
        ),
        ws.transaction() as tx,
    ):
        tx.insert("r", [(1, 1000, -7)])
    with pytest.raises(errors.RangeError, match="more than 64 bits hold"), ws.transaction() as tx:
        tx.insert("r", [(1, 1000, 2**62), (2, 1001, 2**62)])
    assert rows_of(ws["h"].table) == before
    ws.check_invariants()
    with ws.transaction() as tx:
        tx.insert("r", [(1, 1000, 2**62), (1, 1001, -0)])
    assert set(rows_of(ws["h"].table)) == {(1, 1000)}
    ws.verify()


def test_explain_says_how_they_are_kept() -> None:
    ws = Workspace()
    ws.load("r", [(1, 10, 1)], columns=["g", "v", "w"])
    ws.install("h[g] = quantile(v, 0.5, w) <- r(g, v, w).")
    shown = str(ws.explain_maintenance("h"))
    assert "aggregate quantile" in shown
    assert "ordered by g, v, w" in shown
