"""stateful: a workspace whose single changes go by the commit machine, in step with one that has none.

Random programs of the kinds that the machine takes, some of others beside, over dense data: equal rows, rows
that are there or are not, several calls of a transaction.  Values are integers, with NULL among them or
without, doubles, decimals, or texts, whose codes are given back soon; relations are sets, bags, wide ones, or
have keys, which some commits give a second row, so that they are refused.  Layers are folded at every size,
from one row on.
Heads under `auto` change phases, and go over to views, soon.  Some transactions come in batches.  Between
commits heads go over to other strategies, relations are loaded, read and queried, snapshots are held; the
one with the machine is in memory, or in a folder, which is opened again.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from lftj import errors
from lftj.values import collector
from maintenance import Snapshot, Workspace
from maintenance.machine import machine
from maintenance.machine.structures import Sizes
from maintenance.strategies.auto import auto_body, view_choice
from support.daily import drawn_daily
from support.rows import rows_of
from support.small_limits import wide_relations

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
    pytest.mark.filterwarnings("ignore::lftj.errors.EqualRowsWarning"),
    pytest.mark.kernel,
]

ARITIES = {"r": 2, "s": 2, "t": 3, "u": 1}
COLUMNS = "abc"

RULES = (
    "deg[a] = count() <- r(a, _).",
    "rows[] = count() <- r(_, _).",
    "tri(a, b, c) <- r(a, b), r(b, c), r(a, c).",
    "sums[a] = sum(c) <- r(a, b), s(b, c).",
    "total[] = sum(b) <- r(_, b).",
    "two(a, c) <- r(a, b), s(b, c).",
    "first(a) <- r(a, _).",
    "either(a) <- r(a, _). either(a) <- s(_, a). either(a) <- u(a).",
    "alone(a, b) <- r(a, b), !s(b, a).",
    "loop(a) <- r(a, a).",
    'left(a, c) <- r(a, b), s(b, c). left(a, c) <- r(a, b), !s(b, _), c = cast(null, "int64").',
    "three(b) <- r(3, b).",
    "less(a, c) <- r(a, b), s(b, c), a < c.",
    "wide[c, a] = sum(d) <- t(a, b, c), s(b, d).",
    "middle[b] = count() <- t(_, b, _).",
    "same(a, c) <- t(a, a, c).",
    "swapped(b, a) <- s(a, b), u(a).",
    "paths[a] = count() <- r(a, b), s(b, c), t(c, _, _).",
    "product(a, b) <- u(a), u(b).",
    "some(a) <- (r(a, _); s(a, _)).",
    "shifted(a, x) <- t(a, _, _), x = a + 1.",
    "products[a] = sum(p) <- r(a, b), s(b, c), p = b * c - a, p != 4.",
    "least[a] = min(b) <- u(a), s(a, b).",
    "most[b] = max(c) <- r(a, b), t(a, c, _).",
    "middle_of[a] = quantile(b, 0.5, c) <- t(a, b, c).",
    "upper[] = upper_quantile(b, 0.25) <- r(_, b).",
    "later[a] = sum(d) <- t(a, v, p), t(a, w, q), p > q, d = v * p - w * q.",
    "far[b] = sum(w) <- r(b, p), s(w, q), p - q > 1.",
    "beside(a, count(), sum(b)) <- r(a, b).",
    "ends(max(c), a, count(), min(b)) <- r(a, b), s(b, c).",
    "amounts(sum(p), count(), sum(c), upper_quantile(b, 0.3, c)) <- t(a, b, c), p = a * b.",
    "mean[a] = avg(b) <- u(a), s(a, b).",
    "means(avg(p), a, count(), avg(c)) <- t(a, b, c), p = b - 3 * c.",
    "whole(count() default 0, sum(b) default null) <- r(a, b), s(b, _).",
    "none(x) <- !s(_, _), r(_, _), x = 5.",
    "bag copies(b) <- r(a, b), s(_, b).",
    "bag all(a) <- r(a, _). bag all(c) <- s(_, c). bag all(a) <- u(a).",
    "near(b) <- r(a, b), x = a - b, abs(x) < 3, 2 * x <= b.",
    "half(a, x) <- t(a, _, _), x = a / 2.",
    "kinds[a] = count(distinct c) <- r(a, b), s(b, c).",
    "some_kinds(count(distinct b), a, count()) <- t(a, b, _).",
    "shares[a] = sum(p) <- r(a, b), s(b, c), p = b * 0.1 - c / 3.",
    "scaled(a, avg(p), count()) <- t(a, b, c), p = (b - c) * 1.5, p > a.",
    "outer(a, count(), max(b)) <- r(a, b). outer(a, count(), b) <- t(a, _, b), !r(a, _).",
    "joined(a, count(), sum(c)) <- r(a, b), s(b, c). "
    'joined(a, n, v) <- u(a), !r(a, _), n = 1, v = cast(null, "int64").',
    "parts(min(b), a, max(b)) <- r(a, b). parts(max(a), b, min(a)) <- s(a, b). parts(a, b, c) <- t(a, b, c).",
    "added(a, sum(b), count()) <- r(a, b). added(b, sum(c), count()) <- t(_, b, c).",
    "any_of[a] = count() <- (r(a, b); s(a, b)).",
    "any_sum(a, sum(b), count()) <- t(a, b, c), (b < c; r(a, c)). any_sum(a, sum(b), count()) <- s(a, b).",
    "bag any_rows(a, b) <- (r(a, b); s(b, a)). bag any_rows(b, b) <- u(b).",
)
ABOVE = (
    "deg[a] = count() <- r(a, _). hist[d] = count() <- deg[_] = d.",
    "two(a, c) <- r(a, b), s(b, c). back(a) <- two(a, b), two(b, a). n[] = count() <- back(_).",
    "sums[a] = sum(c) <- r(a, b), s(b, c). high(a) <- sums[a] = x, x > 20.",
    "bar[] = upper_quantile(b, 0.5, c) <- t(_, b, c). "
    "above[] = sum(x) <- t(_, b, c), bar[] = m, b >= m, x = b * c.",
    "ends(a, min(b), max(b), count()) <- r(a, b). widths[d] = count() <- ends(_, b, c, n), n > 1, d = c - b.",
    "bag pairs(a, c) <- r(a, b), s(b, c). n[a] = count() <- pairs(a, _). bag some(a) <- pairs(a, c), u(c).",
    "low[a] = min(b) <- r(a, b). n[a] = count() <- s(a, _). both[a] = x <- low[a] = y, n[a] = z, x = y - z.",
)
OTHERS = (
    "spread[a] = variance(b) <- u(a), s(a, b).",
    "reach(a, b) <- u(a), t(a, b, _). reach(a, c) <- reach(a, b), t(b, c, _).",
    "root(a, x) <- t(a, b, _), x = sqrt(abs(b)).",
)

KINDS = (
    *("integers", "integers", "nulls", "texts", "doubles", "decimals"),
    *("bags", "wide", "keyed", "keyed", "keyed wide"),
)
"""Of values, or of relations of integers."""

TYPES = {"texts": pa.string(), "doubles": pa.float64(), "decimals": pa.decimal128(7, 2)}

KEYS = {"r": "a", "s": "b", "t": "ca"}
"""Of relations that have one where the kind says so: first columns, others, and in another order."""

Changed = tuple[str, list[tuple[Any, ...]], int | str]
"""A relation, rows, and 1 to insert them, -1 to erase them; else "upsert", or "erase_keys" of their keys."""

SIZES = st.builds(
    Sizes,
    rows=st.sampled_from((3, 20, 2048)),
    first=st.sampled_from((1, 5, 256)),
    few=st.sampled_from((1, 2, 7, None)),
    many=st.sampled_from((1, 2, 30, None)),
    spilled=st.sampled_from((0, 1, 5, 64)),
    log=st.sampled_from((40, 300, 1 << 16)),
    taken=st.sampled_from((0, 100, 1 << 22)),
    budget=st.sampled_from((10, 1 << 18)),
)


def commit(ws: Workspace, changes: list[Changed]) -> Any:
    with ws.transaction() as tx:
        for name, rows, how in changes:
            if how == "erase_keys":
                rows = [tuple(row["abc".index(column)] for column in KEYS[name]) for row in rows]
            getattr(tx, {1: "insert", -1: "erase"}.get(how, str(how)))(name, rows)
    return tx


def head_of(rule: str) -> str:
    return rule.split("(")[0].split("[")[0].removeprefix("bag ")


def of_texts(rule: str) -> bool:
    """Whether a rule can be about texts: it computes nothing of them, and weighs by none."""
    return not any(
        each in rule
        for each in ("int64", "sum(", "3", "+", " - ", "avg(", "variance(", "/", "0.5, c)", "sqrt(")
    )


def of_numbers(rule: str) -> bool:
    """Whether a rule can be about numbers that are not whole: it weighs by none."""
    return not any(each in rule for each in ("int64", "quantile(b, 0.5, c", "0.3, c)", "0.25, c)"))


def in_order(table: Any) -> list[Any]:
    """The rows; by code they come in the order of the codes, which are not the same in two workspaces."""
    return sorted(rows_of(table), key=str)


class InStep(RuleBasedStateMachine):
    """What one workspace has, the other has."""

    def __init__(self) -> None:
        super().__init__()
        self.both: list[Workspace] = []
        self.sizes = Sizes()
        self.folder: Path | None = None
        self.is_anew = False
        """Whether `auto` has begun anew, in a folder that was opened again: it may keep heads by views then,
        whose rules the other workspace does not have."""
        self.held: list[tuple[list[Snapshot], dict[str, list[Any]]]] = []
        self.unread: list[tuple[Any, dict[str, list[Any]]]] = []
        """Transactions by the machine whose changes nobody has read, and what these are."""
        self.patches = ExitStack()
        self.patches.enter_context(mock.patch.multiple(machine, FEWEST=1, MOST=2))
        for module in (auto_body, view_choice):  # phases and views come and go
            self.patches.enter_context(mock.patch.object(module, "LEAST_BUDGET", 300))
        self.patches.enter_context(
            mock.patch.multiple(collector, LEAST_ADDED=1, LEAST=3, PACE=1, WALKED_PER_ADDED=1000)
        )

    def teardown(self) -> None:
        self.patches.close()

    @initialize(
        rules=st.lists(st.sampled_from(RULES), max_size=4, unique=True),
        above=st.sampled_from(("", *ABOVE)),
        other=st.sampled_from(("", "", *OTHERS)),
        strategy=st.sampled_from(("delta", "views", "auto", "auto")),
        sizes=SIZES,
        domain=st.sampled_from((2, 4, 9)),
        kind=st.sampled_from(KINDS),
        seed=st.integers(0, 2**32),
        in_folder=st.booleans(),
    )
    def begin(
        self,
        rules: list[str],
        above: str,
        other: str,
        strategy: str,
        sizes: Sizes,
        domain: int,
        kind: str,
        seed: int,
        in_folder: bool,
    ) -> None:
        self.domain, self.random, self.kind = domain, Random(seed), kind
        if "wide" in kind:
            self.patches.enter_context(wide_relations())
        if kind in TYPES:
            fits = of_texts if kind == "texts" else of_numbers
            rules = [rule for rule in rules if fits(rule)]
            above, other = (one if fits(one) else "" for one in (above, other))
        heads = {head_of(rule) for rule in above.split(". ") if rule}
        program = [one for one in rules if head_of(one) not in heads]
        loaded = {name: self.rows(name, self.random.randrange(12)) for name in ARITIES}
        if "keyed" in kind:  # the last row of a key
            loaded = {
                name: list({self.key(name, row): row for row in loaded[name]}.values()) for name in loaded
            }
        self.sizes, self.folder, self.is_anew = sizes, None, False
        if in_folder:
            self.folder = Path(self.patches.enter_context(tempfile.TemporaryDirectory())) / "ws"
        self.both = [self.fast_one(), Workspace(single_changes="general")]
        for ws in self.both:
            for name, rows in loaded.items():
                nulls, bag = "keep" if kind == "nulls" else "refuse", kind == "bags" and name != "s"
                key = [*KEYS[name]] if self.has_key(name) else []
                ws.load(name, self.table(name, rows), nulls=nulls, bag=bag, key=key)
            if text := " ".join((*program, above)).strip():
                ws.install(text, strategy)
            if other:
                ws.install(other, "delta" if "reach" not in other else "auto")
        self.machine._wait = 1

    def fast_one(self) -> Workspace:
        if self.folder is None:
            ws = Workspace(single_changes="machine")
        else:
            durability = self.random.choice(("interval", "none"))
            ws = Workspace.open(self.folder, durability=durability, single_changes="machine")
        its = ws._published.machine
        assert its is not None
        its.sizes, its.checks = self.sizes, True
        return ws

    def table(self, name: str, rows: list[tuple[Any, ...]]) -> pa.Table:
        type_ = TYPES.get(self.kind, pa.int64())
        columns = ([row[i] for row in rows] for i in range(ARITIES[name]))
        return pa.table({c: pa.array(each, type_) for c, each in zip(COLUMNS, columns, strict=False)})

    @property
    def machine(self) -> machine.Machine:
        its = self.both[0]._published.machine
        assert its is not None
        return its

    def rows(self, name: str, n: int) -> list[tuple[int, ...]]:
        return [tuple(self.value() for _ in range(ARITIES[name])) for _ in range(n)]

    def has_key(self, name: str) -> bool:
        return "keyed" in self.kind and name in KEYS

    def key(self, name: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(row["abc".index(column)] for column in KEYS.get(name, COLUMNS[: len(row)]))

    def value(self) -> Any:
        number = self.random.randrange(self.domain)
        if self.kind == "texts":
            return f"new {self.random.random()}" if self.random.random() < 0.1 else f"text {number}"
        if self.kind == "doubles":
            return self.random.choice((number / 4, number + 0.1, -number * 1e9))
        if self.kind == "decimals":
            return Decimal(number * self.random.choice((25, 100))) / 100
        return None if self.kind == "nulls" and number == 1 else number

    # -- commits ----------------------------------------------------------------------------------

    @rule(calls=st.sampled_from((1, 1, 1, 2, 4)), most=st.sampled_from((1, 1, 2, 6)))
    def commits(self, calls: int, most: int) -> None:
        draw = self.random
        changes = []
        for _ in range(calls):
            name = draw.choice([*ARITIES, "r", "s"])
            how: int | str = draw.choice((1, 1, -1))
            if self.has_key(name):
                how = draw.choice((1, -1, "upsert", "upsert", "upsert", "erase_keys"))
            changes.append((name, self.rows(name, draw.randrange(1, most + 1)), how))
        self.commit(changes)

    @rule(n=st.integers(5, 25))
    def many_commits(self, n: int) -> None:
        for _ in range(n):
            self.commits(1, 1)

    @rule(n=st.integers(1, 12), most=st.sampled_from((1, 1, 2, 6)), share=st.sampled_from((0.2, 1.0)))
    def in_one_call(self, n: int, most: int, share: float) -> None:
        """Many transactions in a batch; some change ``share`` of the relations."""
        draw, names = self.random, self.random.sample([*ARITIES], max(1, round(share * len(ARITIES))))
        rows: dict[str, list[tuple[Any, ...]]] = {}
        for number in range(n):
            for _ in range(draw.randrange(1, most + 1)):
                name = draw.choice(names)
                row = self.rows(name, 1)[0]
                rows.setdefault(name, []).append((*row, draw.choice((1, 1, -1)), number))
        batch = {name: self.table(name, its) for name, its in rows.items()}
        for name, its in rows.items():
            for place, column in enumerate(("weight", "txn"), ARITIES[name]):
                batch[name] = batch[name].append_column(column, pa.array([row[place] for row in its]))
        fast, general = (self.outcome_of_batch(ws, batch) for ws in self.both)
        if isinstance(general, str):
            assert "KeyConflictError" in general and "keyed" in self.kind
            assert fast == general
            return
        assert fast.transactions == general.transactions
        for one, other in zip(fast, general, strict=True):
            for head in self.both[1].heads:
                assert in_order(one[head]) == in_order(other[head]), head
        self.have_same_figures(fast.stats, general.stats)

    def have_same_figures(self, one: Any, other: Any) -> None:
        assert (one.inserted, one.erased, one.no_changes) == (other.inserted, other.erased, other.no_changes)
        if not self.is_anew:
            assert one.rules.keys() == other.rules.keys()
        for head in self.both[1].heads:
            first, second = (its[head].head_changes if head in its.rules else 0 for its in (one, other))
            assert first == second, head

    def outcome_of_batch(self, ws: Workspace, batch: dict[str, pa.Table]) -> Any:
        try:
            return ws.apply_many(batch)
        except errors.LftjError as error:
            return f"{type(error).__name__}: {error}"

    @rule()
    def undoes(self) -> None:
        (rows,) = [self.rows("r", 2)]
        self.commit([("r", rows, 1), ("r", rows[::-1], -1)])

    @rule()
    def a_large_one(self) -> None:
        self.commit([("r", self.rows("r", 70), 1), ("t", self.rows("t", 3), 1)])

    @precondition(lambda self: self.kind != "texts" and "keyed" not in self.kind)
    @rule()
    def in_a_table(self) -> None:
        for ws in self.both:
            with ws.transaction() as tx:
                tx.insert("u", [(1,)])
                tx.insert("r", {"a": [0, 1], "b": [1, 1]})
                tx.erase("u", [(0,)])

    @precondition(lambda self: self.kind == "integers")
    @rule(source=st.sampled_from(([(1,)], [(1, "x")], [(1, 2**63)], [(1, None)], 5)))
    def is_refused(self, source: Any) -> None:
        for ws in self.both:
            tx = ws.transaction()
            tx.insert("r", [(0, 0)])
            with pytest.raises((errors.LftjError, TypeError, ValueError)):
                tx.insert("r", source)
            tx.roll_back()

    @precondition(lambda self: self.kind not in TYPES)
    @rule(large=st.sampled_from((2**62, -(2**62), 2**63 - 1)))
    def may_overflow(self, large: int) -> None:
        """Sums that fit no more are refused by both, in the same words."""
        changes = [("r", [(0, 1), (0, large)], 1), ("s", [(1, large), (1, large - 1), (0, 1)], 1)]
        told = [self.outcome(ws, changes) for ws in self.both]
        assert type(told[0]) is type(told[1])
        assert not isinstance(told[0], str) or told[0] == told[1]
        back = [(name, rows, -1) for name, rows, _ in changes]
        self.commit(back)

    def outcome(self, ws: Workspace, changes: list[Changed]) -> Any:
        """The transaction, or what is said of an error."""
        try:
            return commit(ws, changes)
        except errors.LftjError as error:
            return f"{type(error).__name__}: {error}"

    def commit(self, changes: list[Changed]) -> None:
        fast, general = (self.outcome(ws, changes) for ws in self.both)
        if isinstance(general, str):
            assert general.startswith("KeyConflictError") and "keyed" in self.kind
            assert fast == general
            return
        expected = {head: in_order(general.changes[head]) for head in self.both[1].heads}
        self.unread.append((fast, expected))
        if self.random.random() < 0.7:
            self.read_changes()
        self.have_same_figures(fast.stats, general.stats)
        assert not general.stats.fast

    @rule()
    def read_changes(self) -> None:
        for transaction, expected in self.unread:
            assert transaction.changes.keys() == expected.keys()
            for head, rows in expected.items():
                assert in_order(transaction.changes[head]) == rows, head
        self.unread.clear()

    # -- what else happens ------------------------------------------------------------------------

    @rule()
    def reads(self) -> None:
        assert self.contents(self.both[0]) == self.contents(self.both[1])

    @rule()
    def forgets_values(self) -> None:
        """Those that nobody needs, while what the machine did is in no version yet."""
        self.both[0].domains.collector.sweep()

    @rule()
    def queries(self) -> None:
        one, other = (rows_of(ws.query("q(b, a, c) <- r(a, b), s(a, c).")) for ws in self.both)
        assert sorted(one, key=str) == sorted(other, key=str)

    @rule()
    def holds_a_snapshot(self) -> None:
        self.held.append(([ws.snapshot() for ws in self.both], self.contents(self.both[1])))

    @rule()
    def verifies(self) -> None:
        self.both[0].verify()
        self.both[0].check_invariants()

    @rule(strategy=st.sampled_from(("trace", "recompute", "delta", "delta", "auto")))
    def goes_over(self, strategy: str) -> None:
        heads = [name for name in self.both[1].heads if name != "reach"]
        if heads:
            head = self.random.choice(heads)
            for ws in self.both:
                ws.set_strategy(head, strategy)

    @rule()
    def loads(self) -> None:
        for ws in self.both:
            ws.load("apart", [(1, 2)], columns=["a", "b"])

    @precondition(lambda self: self.folder is not None)
    @rule(with_image=st.booleans())
    def is_opened_again(self, with_image: bool) -> None:
        """What was committed is in the folder, whether the process ends well or not."""
        store = self.both[0]._published.store
        assert store is not None
        (self.both[0] if with_image else store).close()
        self.both[0] = self.fast_one()
        self.is_anew = True
        self.reads()

    @rule()
    def is_compacted(self) -> None:
        for ws in self.both:
            ws.compact()

    @rule()
    def is_listened_to(self) -> None:
        """Whoever subscribes hears of all that comes, once."""
        if not (heads := self.both[1].heads):
            return
        heard: list[list[Any]] = [[], []]
        ends = [ws.subscribe(heads[0], its.append) for ws, its in zip(self.both, heard, strict=True)]
        self.many_commits(3)
        for end in ends:
            end()
        one, other = ([in_order(table) for table in each] for each in heard)
        assert one == other

    def contents(self, ws: Workspace | Snapshot) -> dict[str, list[Any]]:
        return {name: in_order(ws[name].table) for name in (*ARITIES, *self.both[1].heads)}

    @invariant()
    def snapshots_stay(self) -> None:
        if len(self.held) > 2:
            snapshots, contents = self.held.pop(0)
            names = contents.keys() & {*ARITIES, *self.both[1].heads}
            for snapshot in snapshots:
                assert all(in_order(snapshot[name].table) == contents[name] for name in names)

    @invariant()
    def numbers_agree(self) -> None:
        """Whoever asks for the state folds; so only now and then."""
        if self.both and self.random.random() < 0.1:
            one, other = (ws._state.number for ws in self.both)
            assert one == other
            if self.folder is None:
                assert self.both[0].stats.commits == self.both[1].stats.commits


def test_fast_and_general_go_in_step() -> None:
    examples = settings.default.max_examples if settings.default else 100
    run_state_machine_as_test(
        drawn_daily(InStep),
        settings=settings(
            max_examples=examples, stateful_step_count=15, suppress_health_check=list(HealthCheck)
        ),
    )
