"""worked examples and random rules: trigger programs, as `ws.triggers` shows them."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj import errors
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from support.maintained_scenarios import heads_of, installed
from support.strategies import Scenario, scenarios

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")


def program(rule: str, strategy: str = "views") -> str:
    ws = Workspace()
    for name, columns in {"R": ("a", "b"), "S": ("b", "c"), "T": ("b", "d")}.items():
        ws.load(name, [(i, 3 * i + j) for i in range(12) for j in range(12)], columns=list(columns))
    ws.load("edge", [(i, j) for i in range(12) for j in range(12)], columns=["src", "dst"])
    ws.load("customer", [(1, 2)], columns=["custkey", "balance"])
    ws.load("orders", [(1, 2, 3)], columns=["custkey", "ordkey", "sprior"])
    ws.load("lineitem", [(1, 2)], columns=["ordkey", "extprice"])
    ws.install(rule, strategy)
    return str(ws.triggers("h"))


def on(event: str, text: str) -> list[str]:
    """The statements of one event."""
    lines = text.splitlines()
    first = lines.index(f"on {event}:") + 1
    end = next((at for at in range(first, len(lines)) if lines[at].startswith("on ")), len(lines))
    return [line.strip() for line in lines[first:end]]


def test_the_viewlet_notes_sum_over_r_and_s() -> None:
    """Their Q := Sum(R(A, B) * S(B, C) * A) and M_S[B] := Sum[B](R(A, B) * A)."""
    ws = Workspace()
    ws.load("R", [(a, b) for a in range(60) for b in range(4)], columns=["a", "b"])
    ws.load("S", [(b, c) for b in range(4) for c in range(60)], columns=["b", "c"])
    ws.install("h[] = sum(a) <- R(a, b), S(b, c).", "views")
    text = str(ws.triggers("h"))
    assert text.rstrip() == dedent("""\
        on +R(a, b):
          h#view1[b] += a
          h[] += change(h#view1[b]) for each S(b, c)
        on -R(a, b):
          h#view1[b] -= a
          h[] += change(h#view1[b]) for each S(b, c)
        on +S(b, c):
          h[] += h#view1[b]
        on -S(b, c):
          h[] -= h#view1[b]""")


def test_a_star_is_looked_up_in_constant_time() -> None:
    text = program("h[] = sum(v) <- R(x, b), S(x, c), T(x, d), v = b * c * d.")
    assert on("+R(a, b)", text) == [
        "h#view1[a] += b",
        "h[] += change(h#view1[x]) * h#view2[x] * h#view3[x]",
    ]
    assert on("-T(b, d)", text) == [
        "h#view3[b] -= d",
        "h[] += h#view1[x] * h#view2[x] * change(h#view3[x])",
    ]


def test_first_order_deltas_of_the_q3_like_example() -> None:
    """Its q' for each relation; with views, the sum over lineitems is kept, as in its second-order deltas."""
    rule = "h[ok, sp] = sum(ep) <- customer(ck, _), orders(ck, ok, sp), lineitem(ok, ep)."
    text = program(rule, "delta")
    assert on("+customer(custkey, balance)", text) == [
        "h[ok, sp] += ep for each orders(custkey, ok, sp), lineitem(ok, ep)"
    ]
    assert on("+lineitem(ordkey, extprice)", text) == [
        "h[ordkey, sp] += extprice for each customer(ck, _), orders(ck, ordkey, sp)"
    ]
    assert on("-orders(custkey, ordkey, sprior)", text) == [
        "h[ordkey, sprior] -= ep for each customer(custkey, _), lineitem(ordkey, ep)"
    ]
    text = program(rule)
    assert on("+customer(custkey, balance)", text) == [
        "h[ok, sp] += h#view1[ok] for each orders(custkey, ok, sp)"
    ]
    assert on("+lineitem(ordkey, extprice)", text) == [
        "h#view1[ordkey] += extprice",
        "h[ok, sp] += change(h#view1[ok]) for each customer(ck, _), orders(ck, ok, sp)",
    ]


def test_a_relation_joined_with_itself_is_read_before_and_after() -> None:
    text = program("h[] = sum(v) <- edge(a, b), edge(b, c), edge(c, d), v = a * d.")
    assert on("-edge(src, dst)", text) == [
        "h#view1[dst] -= src",
        "h#view2[src] -= dst",
        "h[] -= old h#view1[src] * old h#view2[dst]",
        "h[] += change(h#view1[b]) * old h#view2[c] for each new edge(b, c)",
        "h[] += new h#view1[b] * change(h#view2[c]) for each new edge(b, c)",
    ]


@pytest.mark.parametrize(
    ("rule", "strategy", "event", "statements"),
    [
        (
            "h[a] = count() <- R(a, b), S(a, c), b < c.",
            "delta",
            "+S(b, c)",
            ["h[b] += 1 for each R(b, b2) if b2 < c"],
        ),
        (
            "h(a) <- edge(a, b), !S(b, a), edge(b, 3), edge(a, a).",
            "delta",
            "+edge(src, dst)",
            [
                "h(src) += 1 if old edge(dst, 3), old edge(src, src), !S(dst, src)",
                "h(a) += 1 for each new edge(a, src) if dst = 3, old edge(a, a), !S(src, a)",
                "h(src) += 1 for each new edge(src, b) if dst = src, new edge(b, 3), !S(b, src)",
            ],
        ),
        (
            "h(a) <- R(a, b), !S(b, a).",
            "delta",
            "+S(b, c)",
            ["h(c) -= 1 if R(c, b)"],
        ),
        (
            "h(a) <- edge(a, b), edge(c, c).",
            "delta",
            "+edge(src, dst)",
            [
                "h(src) += 1 if edge(c, c)",
                "h(a): all come or go where edge(c, c) begins or ceases to hold",
            ],
        ),
        (
            "h[a] = v <- edge(a, b), b = 3, v = a + b.",
            "delta",
            "-edge(src, dst)",
            ["-h[src] = src + dst if dst = 3"],
        ),
        ("h[a] = max(b) <- R(a, b).", "delta", "-R(a, b)", ["h[a] = max of one b less"]),
        (
            "h[] = avg(v) <- R(a, b), S(a, c), T(a, _), v = b * c.",
            "views",
            "+T(b, d)",
            [
                "h#view3[] += h#view1[b] * h#view2[b]",
                "h#view4[] += 1 for each R(b, b2), S(b, c)",
                "h[] = h#view3[] / h#view4[] anew",
            ],
        ),
        (
            "h(a, sum(b), count()) <- R(a, b), S(b, _).",
            "delta",
            "+R(a, b)",
            [
                "h#1[a] += b for each S(b, _)",
                "h#2[a] += 1 for each S(b, _)",
                "h(a, sum, count) anew from h#1[a] = sum, h#2[a] = count",
            ],
        ),
        (
            "h(a) <- R(a, b), !S(b, a).",
            "trace",
            "+R(a, b)",
            ["h: searched again where its records say that something may have changed"],
        ),
        ("h(a) <- R(a, b).", "recompute", "+R(a, b)", ["h: as recompute does it, not by terms"]),
        (
            "h(a, b) <- edge(a, b). h(a, c) <- h(a, b), edge(b, c).",
            "auto",
            "+edge(src, dst)",
            ["h: as auto does it, not by terms"],
        ),
    ],
)
def test_statements(rule: str, strategy: str, event: str, statements: list[str]) -> None:
    assert on(event, program(rule, strategy)) == statements


@given(scenarios(), st.sampled_from(list(STRATEGIES)))
def test_any_rule_has_triggers(scenario: Scenario, strategy: str) -> None:
    try:
        workspace = installed(scenario, strategy)
    except errors.LftjError:
        return
    for head in heads_of(scenario):
        text = str(workspace.triggers(head))
        read = [relation.name for relation in scenario.loaded if relation.name in scenario.text]
        assert all(f"on {sign}{name}" in text for name in read for sign in "+-")


def test_a_head_that_is_not_there() -> None:
    with pytest.raises(errors.UnknownRelationError, match="nowhere"):
        Workspace().triggers("nowhere")
