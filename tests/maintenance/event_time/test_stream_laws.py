"""laws of streams, on drawn feeds, for every strategy: contents are the history, filtered by the clock."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import nullcontext
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from lftj import errors
from lftj.storage import time_range
from maintenance import Workspace
from maintenance.heads.strategies import COMPONENT_STRATEGIES, STRATEGIES
from support.small_limits import small_limits
from support.stream_model import Batch, Model, ModelStream

RULES = {
    "vol": "vol[s] = sum(q) <- trade(t, s, q, _).",
    "cell": "cell[s, w] = count() <- trade(t, s, q, _), w = div(t, 5).",
    "best": "best[s] = max(q) <- trade(_, s, q, _).",
    "pair": "pair(e, f) <- trade(t, s, _, e), quote(u, s, _, f), u >= t, u <= t + 5.",
    "lonely": "lonely(e) <- trade(_, s, _, e), !quote(_, s, _, _).",
    "fresh": "fresh[s] = sum(q) <- trade(t, s, q, _), t > now() - 6.",
    "near": "near(e, f) <- trade(s: s, t: t, e: e), quote(u, s, _, f), t >= now() - 20, now() - 2 < u.",
    "some": "some(e) <- (trade(t, _, _, e), t >= now() ; quote(t, _, _, e), t > now() - 3), e > 3.",
}
CLOSED = """
tum[s, w] = sum(q) <- trade(t, s, q, _), w = tumble(t, 5).
final tum at w + 5.
met(t, e, f) <- trade(t, s, _, e), quote(u, s, _, f), u >= t, u <= t + 5.
final met at t + 6.
"""
LINKED = "linked(e, f) <- trade(_, s, q, e), trade(_, q, _, f). linked(e, g) <- linked(e, f), linked(f, g)."
COLUMNS = ["t", "s", "q", "e"]


def heads(trades: Counter[Any], quotes: Counter[Any], now: int) -> dict[str, set[Any]]:
    vol: Counter[int] = Counter()
    fresh: Counter[int] = Counter()
    cell: Counter[tuple[int, int]] = Counter()
    best: dict[int, int] = {}
    for t, s, q, _ in trades:
        vol[s] += q
        if t > now - 6:
            fresh[s] += q
        cell[s, t // 5] += 1
        best[s] = max(q, best.get(s, q))
    asked = {quote[1] for quote in quotes}
    return {
        "vol": set(vol.items()),
        "cell": {(s, w, n) for (s, w), n in cell.items()},
        "best": set(best.items()),
        "pair": {(e, f) for t, s, _, e in trades for u, r, _, f in quotes if r == s and t <= u <= t + 5},
        "lonely": {(e,) for _, s, _, e in trades if s not in asked},
        "fresh": set(fresh.items()),
        "near": {
            (e, f)
            for t, s, _, e in trades
            for u, r, _, f in quotes
            if r == s and t >= now - 20 and now - 2 < u
        },
        "some": {(e,) for t, _, _, e in trades if t >= now and e > 3}
        | {(e,) for t, _, _, e in quotes if t > now - 3 and e > 3},
    }


def closed(trades: Counter[Any], quotes: Counter[Any], since: int, now: int) -> dict[str, set[Any]]:
    """Of the whole history, what has closed since the rules were installed."""
    sums: Counter[Any] = Counter()
    for t, s, q, _ in trades:
        if since < t // 5 * 5 + 5 <= now:
            sums[s, t // 5 * 5] += q
    met = {
        (t, e, f)
        for t, s, _, e in trades
        for u, r, _, f in quotes
        if r == s and t <= u <= t + 5 and since < t + 6 <= now
    }
    return {"tum_final": {(s, w, q) for (s, w), q in sums.items()}, "met_final": met}


def started(model: Model, rules: str, strategy: str, loaded: dict[str, list[Any]]) -> Workspace:
    ws = Workspace()
    extents = (6, 6) if "final" in rules else (None, None)
    streams = {"trade": ModelStream(3, 130, False, extents[0]), "quote": ModelStream(1, 9, False, extents[1])}
    for name, stream in streams.items():
        model.load(name, stream, loaded[name])
        rows = pa.table(
            {c: pa.array([row[n] for row in loaded[name]], pa.int64()) for n, c in enumerate(COLUMNS)}
        )
        ws.load(name, rows, time="t", lateness=stream.lateness, keep=stream.keep)
    ws.install(rules, strategy)
    return ws


def drawn(chance: random.Random, model: Model, name: str, latest: int) -> Batch:
    there = sorted(model.streams[name].contents)
    rows: Batch = []
    for _ in range(chance.randrange(5)):
        if there and chance.random() < 0.2:
            rows.append((chance.choice(there), -1))
        else:
            time = latest + chance.randrange(-8, 8)
            rows.append(((time, chance.randrange(4), chance.randrange(1, 6), chance.randrange(40)), 1))
    return rows


@pytest.mark.in_turns
@pytest.mark.parametrize("merges", [(4096, 8), (0, 1)])
@pytest.mark.parametrize("strategy", [*(name for name in STRATEGIES if name != "stages"), "stages"])
def test_contents_are_the_filtered_history(strategy: str, merges: tuple[int, int]) -> None:
    chance = random.Random(f"{strategy} {merges}")
    model, latest, peak = Model(), 1000, 0
    rules = LINKED if strategy in COMPONENT_STRATEGIES and strategy == "stages" else "\n".join(RULES.values())
    with small_limits(merges):
        first = {"trade": [(latest + n, n % 3, 2, n) for n in range(-4, 3)], "quote": [(latest, 1, 1, 1)]}
        ws = started(model, rules, strategy, first)
        for number in range(60):
            batches = {name: drawn(chance, model, name, latest) for name in ("trade", "quote")}
            jump = chance.choice([None] * 9 + [latest + chance.randrange(30)])
            with ws.transaction() as tx:
                for name, batch in batches.items():
                    for row, weight in batch:
                        (tx.insert if weight > 0 else tx.erase)(name, [row])
                if jump is not None and model.now is not None and jump >= model.now:
                    tx.advance(jump)
                else:
                    jump = None
            late, expired = model.commit(batches, jump)
            assert tx.stats.late == {name: len(rows) for name, rows in late.items()}
            assert tx.stats.expired == expired
            assert ws.now == model.now
            shown = {}
            for name, stream in model.streams.items():
                assert ws.late(name) == (stream.inserted_late, stream.erased_late)
                shown[name] = stream.contents
                assert set(ws[name]) == set(shown[name]), number
                assert model.now is not None
                held = [row[0] for row in ws[name]]
                assert not held or min(held) >= model.now - stream.keep - stream.bucket
            for name, rows in (
                heads(shown["trade"], shown["quote"], model.now).items() if rules != LINKED else ()
            ):
                assert set(ws[name]) == rows, (name, number)
            peak = max(peak, ws["trade"].count)
            latest = max([latest + 4, *(row[0] for batch in batches.values() for row, _ in batch)])
        ws.verify()
        ws.check_invariants()
    total = sum(stream.inserted_late + stream.erased_late for stream in model.streams.values())
    assert total > 20 and peak < 200


def _gather(into: set[Any], table: pa.Table) -> None:
    into.update(zip(*table.drop_columns("weight").to_pydict().values(), strict=True))


@pytest.mark.in_turns
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "stages"])
def test_what_closes_is_what_the_whole_history_says(strategy: str, many: bool) -> None:
    """Each row once, though the clock leaps and rows have left; and nothing of it is taken back."""
    chance, latest, model = random.Random(f"{strategy} {many}"), 1000, Model()
    ws = started(model, CLOSED, strategy, {"trade": [(1000, 1, 1, 1)], "quote": [(1000, 1, 1, 1)]})
    since, told = model.now, {name: Counter[Any]() for name in ("tum_final", "met_final")}
    assert since is not None
    for _ in range(25 if many else 60):
        feed: dict[str, list[Any]] = {"trade": [], "quote": []}
        for number in range(3 if many else 1):
            batches = {name: drawn(chance, model, name, latest) for name in feed}
            for name, batch in batches.items():
                feed[name] += [(*row, weight, number) for row, weight in batch]
            if any(batches.values()) or not many:
                model.commit(batches)
            latest += chance.choice([0, 3, 6, 6, 60])
        labels = [*COLUMNS, "weight", "txn"]
        tables = {
            name: pa.table({label: [row[n] for row in rows] for n, label in enumerate(labels)})
            for name, rows in feed.items()
            if rows
        }
        if many:
            changes = [*ws.apply_many(tables)] if tables else []
        else:
            with ws.transaction() as tx:
                for name, table in tables.items():
                    tx.apply(name, table.drop_columns("txn"))
            changes = [tx.changes]
        for change in changes:
            for name, rows_told in told.items():
                for *row, weight in zip(*change[name].to_pydict().values(), strict=True):
                    assert weight == 1
                    rows_told[tuple(row)] += 1
        assert model.now is not None and ws.now == model.now
        histories = [Counter(model.streams[name].history) for name in ("trade", "quote")]
        for name, rows in closed(*histories, since, model.now).items():
            assert set(ws[name]) == rows, name
            assert told[name] == Counter(rows), "each row once"
        for name, stream in model.streams.items():
            assert set(ws[name]) == set(stream.contents)
    ws.verify()
    assert all(len(rows) > 8 for rows in told.values())


def test_a_split_transaction_differs_in_late_rows_alone() -> None:
    chance = random.Random(7)
    lates = 0
    for _ in range(40):
        whole_model, split_model = Model(), Model()
        first = {"trade": [(100, 1, 1, 1)], "quote": [(100, 1, 1, 1)]}
        whole, split = (started(model, RULES["vol"], "delta", first) for model in (whole_model, split_model))
        rows = [(100 + chance.randrange(-3, 60), 1, 2, n) for n in range(12)]
        with whole.transaction() as tx:
            tx.insert("trade", rows)
        late: set[Any] = set()
        split.on_late("trade", partial(_gather, late))
        for row in rows:
            with split.transaction() as tx:
                tx.insert("trade", [row])
        for ws in (whole, split):
            with ws.transaction() as tx:
                tx.advance(170)
        assert set(whole["trade"]) - late == set(split["trade"])
        assert len(late) == sum(split.late("trade")) and whole.now == split.now == 170
        lates += len(late)
    assert lates > 100


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "stages"])
def test_each_transaction_of_a_batch_is_as_by_itself(strategy: str) -> None:
    chance, latest, n_changes = random.Random(11), 1000, 0
    first: dict[str, list[Any]] = {"trade": [(1000, 1, 2, 3)], "quote": []}
    one, many = (started(Model(), "\n".join(RULES.values()), strategy, first) for _ in range(2))
    for _ in range(8):
        feed: dict[str, list[Any]] = {"trade": [], "quote": []}
        alone = []
        for number in range(chance.randrange(1, 6)):
            with one.transaction() as tx:
                for name, rows in feed.items():
                    for _ in range(chance.randrange(4)):
                        time = latest + chance.randrange(-8, 30)
                        row = time, chance.randrange(3), chance.randrange(1, 6), chance.randrange(9)
                        tx.insert(name, [row])
                        rows.append((*row, 1, number))
            alone.append({name: sorted(map(str, tx.changes[name].to_pylist())) for name in one.heads})
            latest += 9
        labels = [*COLUMNS, "weight", "txn"]
        tables = {
            name: pa.table({label: [row[n] for row in rows] for n, label in enumerate(labels)})
            for name, rows in feed.items()
            if rows
        }
        applied = many.apply_many(tables) if tables else []
        given = [alone[number] for number in sorted({row[-1] for rows in feed.values() for row in rows})]
        told = [{name: sorted(map(str, each[name].to_pylist())) for name in many.heads} for each in applied]
        assert told == given
        assert many.now == one.now and many.late("trade") == one.late("trade")
        n_changes += sum(len(rows) for each in told for rows in each.values())
    assert n_changes > 200


def test_rows_leave_by_what_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a window of 6,400 rows, what is read for 100 to leave are these, and not the rows that stay."""
    read = 0
    rows_of = time_range._base_rows

    def counted(*arguments: Any) -> Any:
        nonlocal read
        rows = rows_of(*arguments)
        read += len(rows[0])
        return rows

    monkeypatch.setattr(time_range, "_base_rows", counted)
    ws = Workspace()
    ws.load("trade", {"t": range(6400), "e": range(6400)}, time="t", keep=6400)
    ws.install("n[] = count() <- trade(_, _).")
    left = 0
    for number in range(64, 200):
        times = range(100 * number, 100 * number + 100)
        with ws.transaction() as tx:
            tx.insert("trade", {"t": times, "e": times})
        left += tx.stats.expired.get("trade", 0)
        assert 6400 <= ws["trade"].count <= 6500
    assert left == 100 * 135 and read <= 1.1 * left


def test_strategies_do_not_know_of_streams() -> None:
    """One feed, by each strategy: the same change of each head in each transaction."""
    told = []
    for strategy in (name for name in STRATEGIES if name != "stages"):
        model, chance, latest = Model(), random.Random(5), 1000
        ws = started(model, "\n".join(RULES.values()), strategy, {"trade": [], "quote": []})
        changes = []
        for _ in range(40):
            batches = {name: drawn(chance, model, name, latest) for name in ("trade", "quote")}
            with ws.transaction() as tx:
                for name, batch in batches.items():
                    for row, weight in batch:
                        (tx.insert if weight > 0 else tx.erase)(name, [row])
            model.commit(batches)
            latest += 12
            changes.append({name: sorted(map(str, tx.changes[name].to_pylist())) for name in ws.heads})
        told.append(changes)
    assert all(changes == told[0] for changes in told)
    assert sum(len(rows) for change in told[0] for rows in change.values()) > 200


ENDS = (-(2**63) + 1, 2**63 - 1)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("end", ENDS)
def test_times_at_the_ends_of_whole_numbers(end: int, many: bool) -> None:
    """What would be before all times, or behind, is no other time."""
    chance, closes = random.Random(end), 0
    for _ in range(8):
        spans = [chance.choice((0, 3, 2**58)) for _ in range(4)]
        lateness, keep, ahead = spans[0], spans[0] + spans[1] + 5, spans[2]
        model, ws = Model(), Workspace()
        model.load("r", ModelStream(lateness, keep, extent=5), [])
        ws.load("r", {"t": pa.array([], pa.int64())}, time="t", lateness=lateness, keep=keep, ahead=ahead)
        ws.install("""
            done(t) <- r(t). final done at t + 5.
            fresh(t) <- r(t), t > now() - 4.
        """)
        latest = end if end < 0 else end - 40
        for _ in range(6):
            times = sorted(min(max(latest + chance.randrange(-8, 9), ENDS[0]), ENDS[1]) for _ in range(3))
            latest = min(latest + 6, ENDS[1])
            line = model.streams["r"].waterline
            too_far = line is not None and times[-1] > max(line, ENDS[0]) + lateness + ahead
            if many:
                change = {"t": times, "weight": [1] * 3, "txn": [0] * 3}
                with pytest.raises(errors.StreamError) if too_far else nullcontext():
                    ws.apply_many({"r": change})
            else:
                with pytest.raises(errors.StreamError) if too_far else nullcontext(), ws.transaction() as tx:
                    tx.insert("r", [(time,) for time in times])
            if too_far:
                continue
            model.commit({"r": [((time,), 1) for time in times]})
            stream, now = model.streams["r"], model.now
            assert now is not None
            assert ws.now == max(now, ENDS[0]) and ws.late("r") == (stream.inserted_late, 0)
            assert set(ws["r"]) == set(stream.contents)
            assert set(ws["fresh"]) == {row for row in stream.contents if row[0] > now - 4}
            done = {row for row in stream.history if row[0] + 5 <= now}
            assert set(ws["done_final"]) == done
            closes += len(done)
        ws.verify()
    assert closes > 15
