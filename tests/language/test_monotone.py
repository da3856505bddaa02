"""What may go round through min and max, and the messages about what may not."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lftj import errors
from lftj.language.checker import check
from lftj.language.parser import parse
from lftj.values.domains import Domains
from lftj.values.schema import Column, ColumnType, Schema

DOMAINS = Domains()


def column(name: str, type_: pa.DataType) -> Column:
    return Column(name, ColumnType(DOMAINS.of(type_), type_))


CATALOG = {
    "start": Schema((column("x", pa.int64()),)),
    "road": Schema((column("x", pa.int64()), column("y", pa.int64()), column("w", pa.int64()))),
    "factor": Schema((column("x", pa.int64()), column("u", pa.uint8()))),
}
BEGINS = "d[x] = min(n) <- start(x), n = 0. "
RISES = "d[x] = max(n) <- start(x), n = 0. "


@pytest.mark.parametrize(
    "text",
    [
        BEGINS + "d[y] = min(m) <- d[x] = n, road(x, y, w), m = n + w.",
        BEGINS + "d[y] = min(m) <- d(x, n), road(x, y, w), m = w + n - 3 + n.",
        BEGINS + "d[y] = min(m) <- d[x] = n, road(x, y, _), m = n * 2, n < 7, 9 >= n + 1.",
        "d[x] = min(n) <- start(x), n = 0.5. d[y] = min(m) <- d[x] = n, road(x, y, _), m = n * 1.5 / 2.",
        BEGINS + "d[y] = min(m) <- d[x] = n, road(x, y, w), factor(w, u), m = u * (u + 1) * n.",
        BEGINS + "d[y] = min(m) <- d[x] = n, road(x, y, _), m = -(-2 * n) - 4 * -1.",
        BEGINS + "d[y] = min(w) <- d[x] = _, road(x, y, w).",
        BEGINS + "d[y] = min(w) <- d[x] = n, road(x, y, w), w > n, !start(w).",
        BEGINS + "d[y] = min(m) <- (d[x] = n, road(x, y, w), m = n + w ; road(x, y, m), x = 1).",
        RISES + "d[y] = max(m) <- d[x] = n, road(x, y, w), m = n - w, n > w.",
        RISES + "d[y] = max(c) <- d[x] = n, road(x, y, w), road(_, _, c), c <= n, c <= w.",
        RISES + "d[y] = max(m) <- d[x] = n, road(x, y, w), m = least(n, w).",
        RISES + "d[y] = max(m) <- d[x] = n, d[y] = o, road(x, y, w), m = greatest(n + 1, o, w - 2).",
        # One falls as the other rises, and tuples that only come.
        BEGINS + "h[y] = max(m) <- d[x] = n, road(x, y, _), m = 9 - n. d[x] = min(m) <- h[x] = n, m = 5 - n.",
        BEGINS + "near(x) <- d[x] = n, n < 5. d[y] = min(m) <- near(x), road(x, y, m).",
        BEGINS + "far(x, n), d[x] = min(n) <- d[x] = n, start(x).",
    ],
)
def test_values_that_only_get_better(text: str) -> None:
    checked = check(parse(text), CATALOG, DOMAINS)
    assert "d" in checked.component_of("d")


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("d[y] = min(m) <- d[x] = n, road(x, y, w), m = n * w.", "n * w", "for w may be negative"),
        ("d[y] = min(m) <- d[x] = n, road(x, y, w), m = n / w.", "n / w", "for w may be negative"),
        ("d[y] = min(m) <- d[x] = n, road(x, y, w), m = n % 7.", "n % 7", "for a remainder goes up and down"),
        ("d[y] = min(m) <- d[x] = n, road(x, y, w), m = abs(n).", "abs(n)", "for it is no sum"),
        (
            "d[y] = min(m) <- d[x] = n, road(x, y, w), m = least(n, w - n).",
            "least(n, w - n)",
            "for its arguments move in different ways",
        ),
        ("d[y] = min(m) <- d[x] = n, road(x, y, w), m = w / n.", "w / n", "for both sides of it are read"),
        ("d[y] = min(m) <- d[x] = n, start(y), m = n * n.", "n * n", "for both sides of it are read"),
        ("d[y] = min(m) <- d[x] = n, start(y), m = 2 * n - n.", "2 * n - n", "move in different ways"),
        (
            "d[y] = min(m) <- d[x] = n, start(y), m = 3 - n.",
            "m",
            "'m' rises from round to round; take max(m)",
        ),
        ("d[y] = min(m) <- d[x] = n, start(y), m = n, n > 3.", "n > 3", "compare by n < or <= here"),
        ("d[y] = min(m) <- d[x] = n, start(y), m = n, 3 < n.", "3 < n", "compare by n < or <= here"),
        ("d[y] = min(m) <- d[x] = n, start(y), m = n, n != 3.", "n != 3", "when 'n' falls"),
        ("d[y] = min(m) <- d[x] = n, start(y), m = 1, n = 3.", "n = 3", "when 'n' falls"),
        ("d[y] = min(m) <- d[x] = n, d[y] = m, n < m.", "n < m", "when 'n' falls"),
        ("d[y] = min(m) <- d[x] = n, road(x, y, n), m = n.", "n", "joins here; use its value in a rule"),
        ("d[y] = min(n) <- d[x] = n, d[y] = n.", "n", "'n', which falls from round to round, joins here"),
        ("d[y] = min(m) <- d[x] = n, start(y), !start(n), m = n.", "n", "joins here"),
        ("d[y] = min(m) <- d[x] = 3, start(y), m = 3.", "3", "may have the value 3 in one round"),
        ("d[n] = min(m) <- d[x] = n, m = 3.", "n", "is a key here; make such tuples in a rule"),
        ("r(n) <- d[x] = n. d[y] = min(y) <- r(y).", "n", "is a key here"),
        (
            "r[x] = n <- d[x] = n. d[y] = min(y) <- r[y] = _.",
            "n",
            "'n' falls from round to round; take min(n)",
        ),
    ],
)
def test_values_that_may_get_worse(text: str, place: str, what: str) -> None:
    with pytest.raises(errors.StratificationError) as caught:
        check(parse(BEGINS + text), CATALOG, DOMAINS)
    message = str(caught.value)
    assert "depends on its own min: " in message and what in message
    assert caught.value.span is not None
    assert (BEGINS + text)[slice(*caught.value.span)] == place


def test_the_message() -> None:
    text = "hop[y] = min(m) <- d[x] = n, road(x, y, w), m = n * w.\nd[x] = min(n) <- hop[x] = n."
    with pytest.raises(errors.StratificationError) as caught:
        check(parse(f"{BEGINS}\n{text}"), CATALOG, DOMAINS)
    assert str(caught.value) == (
        "'hop' depends on its own min: hop -> d -> hop, and 'n * w' need not go one way when 'n' falls, for w"
        " may be negative; * takes a constant or unsigned integers here (line 2)\n"
        "  hop[y] = min(m) <- d[x] = n, road(x, y, w), m = n * w.\n"
        "                                                  ^^^^^"
    )


def test_a_parameter_may_be_negative() -> None:
    text = BEGINS + "d[y] = min(m) <- d[x] = n, road(x, y, _), m = n * $k."
    from lftj import Database

    db = Database()
    db.load("start", [(1,)], columns=["x"])
    db.load("road", [(1, 2, 3)], columns=["x", "y", "w"])
    with pytest.raises(errors.StratificationError, match=r"for \$k may be negative"):
        db.query(text, params={"k": 2})
    longer = BEGINS + "d[y] = min(m) <- d[x] = n, road(x, y, _), m = n + $k."
    assert sorted(db.query(longer, params={"k": 2})["min"].to_pylist()) == [0, 2]


@pytest.mark.parametrize(
    "text",
    [
        "d[y] = max(m) <- d[x] = n, road(x, y, w), m = n + w.",
        "d[y] = w <- d[x] = _, road(x, y, w).",
        "d[y] = sum(w) <- d[x] = _, road(x, y, w).",
    ],
)
def test_all_rules_of_a_head_say_the_same(text: str) -> None:
    with pytest.raises(errors.RuleError, match=r"min\(...\)|depends on its own aggregate"):
        check(parse(BEGINS + text), CATALOG, DOMAINS)


@pytest.mark.parametrize(
    "text",
    [
        "n[x] = count() <- start(x). n[y] = count() <- n[x] = _, road(x, y, _).",
        "n[x] = sum(x) <- start(x). n[y] = sum(w) <- n[x] = _, road(x, y, w).",
        "n(x, min(x)) <- start(x). n(y, min(w)) <- n(x, _), road(x, y, w).",
        BEGINS + "d[y] = min(w) <- road(x, y, w), !d(x, _).",
    ],
)
def test_other_aggregates_and_negations_still_may_not(text: str) -> None:
    with pytest.raises(errors.StratificationError, match=r"depends on its own (aggregate|negation): "):
        check(parse(text), CATALOG, DOMAINS)
