"""oracle: a user's functions in rules against Python's, kept by every strategy; what is refused, and how."""

from __future__ import annotations

import functools
import itertools
import json
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lftj
from lftj import errors
from lftj.errors import FunctionError
from lftj.process import debug
from lftj.values.own_functions import is_own
from maintenance import Workspace
from maintenance.heads.strategies import COMPONENT_STRATEGIES, STRATEGIES
from maintenance.image import read_image, write_image
from support.paths import ROOT, child_environment
from support.rows import rows_of


def each(function: Callable[..., Any], result: pa.DataType) -> Callable[..., pa.Array]:
    """A function of values as one of columns."""

    def of_columns(*columns: pa.Array) -> pa.Array:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        return pa.array([function(*row) for row in rows], result)

    return of_columns


def mix(a: int, b: int) -> int:
    return (3 * a + b) % 7


def picky(a: int) -> int:
    if a == 13:
        raise ValueError("that number again")
    return a


OF_COLUMNS = each(mix, pa.int64())
PICKY = each(picky, pa.int64())


def is_odd(values: pa.Array) -> pa.Array:
    return pc.equal(pc.bit_wise_and(values, 1), 1)


def domain(mail: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(mail, ".*@", "")


@pytest.fixture(autouse=True)
def registered() -> None:
    lftj.function("own_mix", OF_COLUMNS, ["int64", "int64"], "int64")
    lftj.function("own_odd", is_odd, ["int64"])
    lftj.function("own_domain", domain, [pa.string()], pa.string())
    lftj.function("own_picky", PICKY, ["int64"], "int64")


@functools.cache
def database() -> lftj.Database:
    db = lftj.Database()
    db.load("e", [(1, 2), (2, 3), (3, 1), (4, 4)], columns=["a", "b"])
    db.load("number", pa.table({"a": range(300)}))
    mails = pa.array(["ann@a.org", "bob@b.com", "cy@a.org"]).dictionary_encode()
    prices = pa.array([Decimal("1.50"), Decimal("2.25"), Decimal("3.00")], pa.decimal128(6, 2))
    db.load("mail", pa.table({"i": pa.array([1, 2, 13], pa.int8()), "m": mails, "p": prices}))
    return db


def rows(rule: str, **options: Any) -> list[tuple[Any, ...]]:
    return sorted(rows_of(database().query(rule, **options)))


# -- what comes out -----------------------------------------------------------


def test_a_function_of_strings_which_are_encoded() -> None:
    assert rows("h(i, d) <- mail(i, m, _), d = own_domain(m).") == [(1, "a.org"), (2, "b.com"), (13, "a.org")]
    assert rows("n[d] = count() <- mail(_, m, _), d = upper(own_domain(lower(m))).") == [
        ("A.ORG", 2),
        ("B.COM", 1),
    ]
    assert rows('h(d) <- e(1, _), d = own_domain("x@y").') == [("y",)]
    assert rows("h(d) <- e(1, _), d = own_domain($mail).", params={"mail": "x@z"}) == [("z",)]


def test_arguments_become_the_declared_type() -> None:
    lftj.function("own_half", lambda x: pc.divide(x, 2.0), ["float64"], "float64")
    lftj.function("own_cents", lambda p: pc.multiply(p, 100).cast(pa.int64()), ["decimal(8, 2)"], "int64")
    assert rows("h(x) <- mail(1, _, p), x = own_half(p).") == [(0.75,)]
    assert rows("h(x) <- mail(i, _, _), i < 3, x = own_half(i) + own_half(0.5).") == [(0.75,), (1.25,)]
    assert rows("h(x) <- mail(i, _, p), i < 2, x = own_cents(p) + own_cents(i) + own_cents(1.5).") == [(400,)]


def test_nan_and_infinities_are_values() -> None:
    lftj.function("own_log", lambda x: pc.ln(x), ["float64"], "float64")
    assert rows("h(a, x) <- e(a, _), a < 2, x = own_log(a - 1).") == [(1, -math.inf)]
    ((value,),) = rows("h(x) <- e(a, _), a < 2, x = own_log(a - 2).")
    assert math.isnan(value)


def test_a_function_that_gives_bool_stands_by_itself() -> None:
    assert rows("h(a) <- e(a, _), own_odd(a).") == [(1,), (3,)]
    assert rows("h(a) <- e(a, _), !own_odd(a + 1).") == [(1,), (3,)]
    assert rows("h(a) <- e(a, b), (own_odd(a), b = 2 ; own_odd(b), a = 3).") == [(1,), (3,)]
    db = lftj.Database()
    db.load("own_odd", [(2,)], columns=["a"])
    db.load("e", [(1, 2), (2, 2)], columns=["a", "b"])
    assert rows_of(db.query("h(a) <- e(a, _), own_odd(a).")) == [(2,)]


def test_a_name_is_known_as_soon_as_it_is_registered() -> None:
    rule = "h(a) <- e(a, _), own_late(a)."
    with pytest.raises(errors.UnknownRelationError, match="own_late"):
        database().query(rule)
    lftj.function("own_late", lambda a: pc.greater(a, 2), ["int64"], "bool")
    assert rows(rule) == [(3,), (4,)]
    assert "own_late(a)" in str(database().explain(rule))


# -- kept up to date ------------------------------------------------------------------

PROGRAM = """
mixed(a, m)   <- e(a, b), m = own_mix(a, b).
odd(a, c)     <- e(a, b), e(b, c), own_odd(c).
near(a, c)    <- e(a, b), e(b, c), own_mix(a, c) < 4.
ends(b)       <- e(_, b), !own_odd(b), !e(b, _).
off(a, m)     <- e(a, b), m = own_mix(a, b), !e(m, _).
total[m] = sum(b) <- e(a, b), m = own_mix(a, b).
"""
RECURSIVE = """
path(a, b) <- e(a, b), !own_odd(a).
path(a, c) <- path(a, b), e(b, c), own_mix(a, c) < 5.
"""
Pairs = set[tuple[int, int]]


def expected(e: Pairs) -> dict[str, set[tuple[Any, ...]]]:
    starts = {a for a, _ in e}
    two = [(a, c) for (a, b), (d, c) in itertools.product(e, e) if b == d]
    groups = {mix(a, b) for a, b in e}
    return {
        "mixed": {(a, mix(a, b)) for a, b in e},
        "odd": {(a, c) for a, c in two if c % 2},
        "near": {(a, c) for a, c in two if mix(a, c) < 4},
        "ends": {(b,) for _, b in e if b % 2 == 0 and b not in starts},
        "off": {(a, mix(a, b)) for a, b in e if mix(a, b) not in starts},
        "total": {(m, sum(b for a, b in e if mix(a, b) == m)) for m in groups},
    }


def expected_paths(e: Pairs) -> dict[str, set[tuple[Any, ...]]]:
    found = {(a, b) for a, b in e if a % 2 == 0}
    while True:
        more = {(a, c) for a, b in found for d, c in e if b == d and mix(a, c) < 5}
        if more <= found:
            return {"path": found}
        found |= more


@pytest.mark.parametrize(
    ("program", "strategy", "reference"),
    [pytest.param(PROGRAM, strategy, expected, id=strategy) for strategy in STRATEGIES]
    + [
        pytest.param(RECURSIVE, strategy, expected_paths, id=f"recursive {strategy}")
        for strategy in COMPONENT_STRATEGIES
    ],
)
def test_every_strategy_keeps_rules_that_call(
    program: str, strategy: str, reference: Callable[[Pairs], dict[str, set[tuple[Any, ...]]]]
) -> None:
    random = Random(7)
    pairs = list(itertools.product(range(6), repeat=2))
    held: Pairs = set(random.sample(pairs, 10))
    ws = Workspace()
    ws.load("e", sorted(held), columns=["a", "b"])
    ws.install(program, strategy)
    for _ in range(6):
        changed = random.sample(pairs, 4)
        with ws.transaction() as tx:
            for pair in changed:
                (tx.erase if pair in held else tx.insert)("e", [pair])
        held ^= set(changed)
        assert {name: set(ws[name]) for name in ws.heads} == reference(held)
    ws.verify()


def test_a_row_that_fails_rolls_its_transaction_back() -> None:
    ws = Workspace()
    ws.load("e", [(1, 2)], columns=["a", "b"])
    ws.install("h(v) <- e(a, _), v = own_picky(a).")
    with (
        pytest.raises(FunctionError, match=r"that number again in own_picky\(a\) where a = 13\n  h\(v\) <- "),
        ws.transaction() as tx,
    ):
        tx.insert("e", [(5, 6), (13, 6)])
    assert (sorted(ws["h"]), len(ws["e"])) == ([(1,)], 1)


# -- names outlive the process, functions do not -----------------------------------------------


def test_images_and_folders_keep_the_name(tmp_path: Path) -> None:
    code = (
        "import sys, lftj, pyarrow.compute as pc\n"
        "from maintenance import Workspace; from maintenance.image import write_image\n"
        "for number in (1, 2):\n"
        "    lftj.function(f'own_next_{number}', lambda a: pc.add(a, 1), ['int64'], 'int64')\n"
        "ws = Workspace.open(sys.argv[1] + '/folder'); ws.load('e', [(1, 2)], columns=['x', 'y'])\n"
        "ws.install('h(v) <- e(a, _), v = own_next_1(a). i(v) <- e(a, _), v = own_next_2(a).')\n"
        "write_image(ws, sys.argv[1] + '/image'); ws.close()\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, cwd=ROOT, env=child_environment())
    with pytest.raises(errors.ImageError, match=r"is not registered here: call lftj.function\('own_next_"):
        read_image(tmp_path / "image")
    with pytest.raises(
        errors.DurabilityError, match=r"can't be installed again: (.|\n)*unknown function 'own_"
    ):
        Workspace.open(tmp_path / "folder")
    lftj.function("own_next_1", lambda a: pc.add(a, 1), ["int64"], "int64")
    lftj.function("own_next_2", lambda a: pc.add(a, 20), ["int64"], "int64")  # another one than there
    with pytest.raises(errors.ImageError, match="'own_next_2' is not what it was when the image was written"):
        read_image(tmp_path / "image")
    with Workspace.open(tmp_path / "folder") as again:
        assert (sorted(again["h"]), sorted(again["i"])) == ([(2,)], [(21,)])
        with again.transaction() as tx:
            tx.insert("e", [(7, 7)])
        assert (sorted(again["h"]), sorted(again["i"])) == ([(2,), (8,)], [(21,), (27,)])
        write_image(again, tmp_path / "image")
    assert sorted(read_image(tmp_path / "image")["h"]) == [(2,), (8,)]


# -- generators ---------------------------------------------------------------


def divisors(number: int) -> Iterator[int]:
    for part in range(1, abs(number) + 1):
        if number % part == 0:
            yield part


def elements(text: str) -> list[int | None]:
    found: list[int | None] = json.loads(text)
    return found


@pytest.mark.parametrize("strategy", ["auto", "trace", "delta", "recompute"])
def test_what_a_generator_gives_is_kept(strategy: str) -> None:
    lftj.generator("own_divisors", divisors, ["int64"], "int64")
    draw = Random(17)
    ws = Workspace()
    held = {(a, draw.randrange(40)) for a in range(20)}
    ws.load("e", sorted(held), columns=["a", "b"])
    ws.load("small", [(n,) for n in range(2, 7)], columns=["n"])
    ws.install("part(a, d) <- e(a, b), d in own_divisors(b), small(d).", strategy)
    ws.install(
        "n[d] = count() <- e(_, b), d in own_divisors(b). odd(a) <- e(a, b), 3 in own_divisors(b).", strategy
    )
    for _ in range(12):
        gone = draw.sample(sorted(held), min(len(held), 4))
        come = [(draw.randrange(20), draw.randrange(40)) for _ in range(4)]
        with ws.transaction() as tx:
            tx.erase("e", gone)
            tx.insert("e", come)
        held = (held - set(gone)) | set(come)
        parts = {(a, d) for a, b in held for d in range(1, b + 1) if b % d == 0}
        assert set(ws["part"]) == {(a, d) for a, d in parts if 2 <= d < 7}
        pairs = {(b, d) for _, b in held for d in range(1, b + 1) if b % d == 0}
        assert dict(ws["n"]) == Counter(d for a, b in held for _, d in [p for p in pairs if p[0] == b])
        assert set(ws["odd"]) == {(a,) for a, b in held if b and b % 3 == 0}
    ws.verify()


def test_elements_that_are_none_or_equal() -> None:
    lftj.generator("own_elements", elements, ["string"], "int64")
    assert rows('h(x) <- e(1, 2), x in own_elements("[3, null, 1, 3]").') == [(1,), (3,)]
    assert rows('h(x) <- e(1, 2), x in own_elements("[]").') == []
    lftj.generator("own_elements", elements, ["string"], "int64")  # again, as a cell that runs twice
    with pytest.raises(FunctionError, match="another function 'own_elements' already"):
        lftj.generator("own_elements", divisors, ["string"], "int64")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1", "'own_elements' raised JSONDecodeError"),
        ('["a"]', "'own_elements' raised Arrow"),
        ("3", "'own_elements' raised TypeError: 'int' object is not iterable"),
    ],
)
def test_a_generator_that_fails_names_the_row(text: str, message: str) -> None:
    lftj.generator("own_elements", elements, ["string"], "int64")
    with pytest.raises(FunctionError, match=message):
        rows("h(x) <- e(1, 2), x in own_elements($text).", params={"text": text})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("own_x", 3, ["int64"], "int64"), "'own_x' needs a function, not int"),
        (("own_x", divisors, ["int64"], pa.list_(pa.int64())), "an element of its result: columns of list"),
        (("own_x", divisors, ["int64"], "integer"), "an element of its result: no type 'integer'"),
        (("in", divisors, ["int64"], "int64"), "'in' is of the language"),
    ],
)
def test_what_can_not_generate(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(FunctionError, match=message):
        lftj.generator(*arguments)
    assert not is_own("own_x")


# -- what is refused ----------------------------------------------------------


def test_a_name_means_one_function() -> None:
    lftj.function("own_odd", is_odd, ["int64"])
    lftj.function("own_twice", lambda a: pc.add(a, a), ["int64"], "int64")
    lftj.function("own_twice", lambda a: pc.add(a, a), ["int64"], "int64")
    for function, types in ((lambda a: pc.multiply(a, 2), ["int64"]), (lambda a: pc.add(a, a), ["int32"])):
        with pytest.raises(FunctionError, match="another function 'own_twice' already"):
            lftj.function("own_twice", function, types, "int64")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("own x", is_odd, ["int64"]), "'own x' can't name a function"),
        (("lower", is_odd, ["int64"]), "'lower' is of the language"),
        (("in", is_odd, ["int64"]), "'in' is of the language"),
        (("count", is_odd, ["int64"]), "'count' is of the language"),
        (("own_x", 3, ["int64"]), "'own_x' needs a function, not int"),
        (("own_x", is_odd, "int64"), r"the types of its arguments are a list, as in \['int64'\]"),
        (("own_x", is_odd, []), "takes 0 arguments"),
        (("own_x", is_odd, ["integer"]), "argument 1: no type 'integer' to cast to"),
        (("own_x", is_odd, [int]), "argument 1: <class 'int'> is no type"),
        (
            ("own_x", is_odd, [pa.list_(pa.int64())]),
            "argument 1: columns of list<item: int64> are not passed",
        ),
        (("own_x", is_odd, ["int64"], pa.string_view()), "its result: columns of string_view"),
        (("own_x", is_odd, ["string"]), "raised ArrowNotImplementedError: .*declare the type of its result"),
        (("own_x", lambda a: a.to_numpy(), ["int64"]), "gives ndarray, not a pyarrow.Array"),
    ],
)
def test_what_can_not_be_registered(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(FunctionError, match=message):
        lftj.function(*arguments)
    assert not is_own("own_x")


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("v = own_domain(a)", errors.TypeClashError, "argument 1 of own_domain is of type int8, not string"),
        ("v = own_mix(a, 1.5)", errors.TypeClashError, "argument 2 of own_mix is of type decimal"),
        ("v = own_mix(a)", errors.ArityError, "'own_mix' takes 2 arguments"),
        ("v = own_mux(a)", errors.RuleSyntaxError, "unknown function 'own_mux'; did you mean 'own_mix'"),
        ("own_mix(a, v)", errors.UnknownRelationError, "'own_mix', but a function: compare"),
        ("v = own_picky(a)", FunctionError, r"raised ValueError: .* in own_picky\(a\) where a = 13"),
    ],
)
def test_rules_that_are_refused(body: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        database().query(f"h(v) <- mail(a, _, _), {body}.")


def test_what_was_raised_is_the_cause() -> None:
    with pytest.raises(FunctionError) as caught:
        database().query("h(v) <- mail(a, _, _), v = own_picky(a).")
    assert isinstance(caught.value.__cause__, ValueError)


STATE: list[int] = []
WRONG: dict[str, tuple[Callable[..., Any], str]] = {
    "short": (lambda a: a.slice(1), r"gave \d+ values for arrays of length \d+: it gives one per row"),
    "python": (lambda a: a.to_pylist(), "gave list, not a pyarrow.Array"),
    "narrow": (lambda a: a.cast(pa.int32()), "gave type int32 and declares int64"),
    "null": (lambda a: pc.if_else(pc.equal(a, 3), None, a), r"gave NULL in own_null\(a\) where a = 3"),
    "range": (
        lambda a: pc.power_checked(a, 60),
        r"raised ArrowInvalid: overflow in own_range\(a\) where a = ([3-9]|\d\d+)\n",
    ),
    "running": (lambda a: pc.cumulative_sum(a), "may depend on a row's arguments alone"),
    "moody": (lambda a: STATE.append(1) or pc.add(a, len(STATE)), "when it was called again"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_function_may_not_give(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, message = WRONG[name]
    lftj.function(f"own_{name}", function, ["int64"], "int64")
    monkeypatch.setattr(debug, "enabled", True)
    with pytest.raises(FunctionError, match=message):
        database().query(f"h(v) <- number(a), v = own_{name}(a).")


def test_an_argument_beyond_its_type_names_the_row() -> None:
    lftj.function("own_small", lambda a: a, ["int8"], "int8")
    with pytest.raises(
        FunctionError, match=r"argument 1 does not fit int8 in own_small\(a \* 100\) where a = [234]"
    ):
        database().query("h(v) <- e(a, _), v = own_small(a * 100).")
