"""laws: a manifest and its bytes say the same, damaged bytes are refused, and so is another's state."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lftj.errors import LftjError, StateError
from spark_bridge.state.manifest import (
    FORMAT,
    Batch,
    Logged,
    PartitionState,
    StateManifest,
    is_cut_short,
    manifest_of,
)

NAMES = st.text(max_size=8)
FILES = NAMES | st.none()
NUMBERS = st.integers(0, 1 << 62)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(NAMES, PLAIN, max_size=4)
LOGGED = st.builds(Logged, NAMES, FILES, NUMBERS)
PARTITIONS = st.builds(PartitionState, NAMES, FILES, FILES, NUMBERS, st.lists(LOGGED, max_size=3).map(tuple))
BATCHES = st.builds(Batch, NUMBERS, NAMES, NUMBERS, st.lists(NAMES, max_size=3).map(tuple))
MANIFESTS = st.builds(
    StateManifest,
    NUMBERS,
    OBJECTS,
    OBJECTS,
    st.dictionaries(NAMES, st.integers(), max_size=3),
    st.dictionaries(NAMES, PARTITIONS, max_size=3),
    st.lists(BATCHES, max_size=3).map(tuple),
    NAMES,
)

SMALL = StateManifest(
    version=3,
    identity={"rule": "tri(a, b, c) <- e(a, b), e(b, c), e(a, c).", "partitions": 64},
    placement={"shares": [4, 4, 4]},
    applied={"clicks": 7},
    partitions={
        "0": PartitionState("s0", "h0", None, 10, (Logged("c2", "d2", 1), Logged("c3", None, 2))),
        "1": PartitionState("s1", None, "i1", 0),
    },
    batches=(Batch(3, "clicks", 7, ("r0", "r1")),),
)


@given(MANIFESTS)
@example(SMALL)
def test_a_round_trip_changes_nothing(manifest: StateManifest) -> None:
    data = manifest.to_bytes()
    back = manifest_of(data, "f", origin="/state")
    assert back == manifest
    assert back.origin == "/state"
    assert back.to_bytes() == data
    assert not is_cut_short(data)
    assert data.count(b"\n") == 1


def test_equal_manifests_are_equal_bytes() -> None:
    backwards = {
        name: dict(reversed(getattr(SMALL, name).items())) for name in ("identity", "applied", "partitions")
    }
    again = replace(SMALL, **backwards, origin="elsewhere")
    assert list(again.partitions) == ["1", "0"]
    assert again == SMALL
    assert again.to_bytes() == SMALL.to_bytes()


def test_what_is_no_json_is_not_written() -> None:
    with pytest.raises(TypeError, match="no place in a manifest"):
        replace(SMALL, identity={"types": {1, 2}}).to_bytes()
    with pytest.raises(ValueError):
        replace(SMALL, identity={"share": float("nan")}).to_bytes()


def test_files_are_all_that_a_version_needs() -> None:
    assert SMALL.files() == {"s0", "h0", "s1", "i1", "c2", "d2", "c3", "r0", "r1"}


# -- damage -------------------------------------------------------------------


def test_every_prefix_is_cut_short_and_refused() -> None:
    whole = SMALL.to_bytes()
    for length in range(len(whole)):
        assert is_cut_short(whole[:length])
        with pytest.raises(
            StateError, match=r"^f: the manifest is damaged \(it was cut short\): .*another state"
        ):
            manifest_of(whole[:length], "f")


@given(st.data())
def test_a_changed_byte_is_refused_or_another_value(data: st.DataObject) -> None:
    whole = bytearray(SMALL.to_bytes())
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        back = manifest_of(bytes(whole), "f")
    except StateError:
        return
    assert manifest_of(back.to_bytes(), "f") == back


@given(PLAIN)
@example([[]])
@example({"format": FORMAT})
def test_other_json_is_refused(value: Any) -> None:
    with pytest.raises(StateError, match=r"^f: "):
        manifest_of(json.dumps(value).encode() + b"\n", "f")


WRONG = [
    (("version",), "3"),
    (("version",), True),
    (("version",), 3.0),
    (("applied",), {"clicks": "7"}),
    (("applied",), []),
    (("identity",), None),
    (("partitions", "0"), []),
    (("partitions", "0", "rows"), None),
    (("partitions", "0", "head"), 1),
    (("partitions", "0", "snapshot"), None),
    (("partitions", "0", "more"), None),
    (("partitions", "0", "logged", 0, "changes"), None),
    (("partitions", "0", "logged", 0), "t2"),
    (("batches", 0, "changes"), [1]),
    (("batches", 0, "changes"), "r0"),
    (("state_id",), 1),
    (("more",), 1),
    (("format",), "1"),
]


@pytest.mark.parametrize(("place", "value"), WRONG, ids=str)
def test_an_entry_of_another_type_is_refused(place: tuple[Any, ...], value: Any) -> None:
    entries = json.loads(SMALL.to_bytes())
    inside = entries
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    with pytest.raises(StateError, match=r"^f: the manifest is damaged \("):
        manifest_of(json.dumps(entries).encode() + b"\n", "f")


def test_a_missing_entry_is_refused() -> None:
    entries = json.loads(SMALL.to_bytes())
    del entries["applied"]
    with pytest.raises(StateError, match=r"has other entries than .*applied"):
        manifest_of(json.dumps(entries).encode() + b"\n", "f")


def test_a_later_format_is_refused_by_its_number_alone() -> None:
    with pytest.raises(StateError, match=rf"^f: its format is {FORMAT + 1}, .* reads format {FORMAT}: use"):
        manifest_of(b'{"format": %d, "contents": "unheard of"}\n' % (FORMAT + 1), "f")


def test_deep_nesting_is_damage() -> None:
    with pytest.raises(StateError, match=r"^f: the manifest is damaged"):
        manifest_of(b"[" * 100_000 + b"\n", "f")


# -- identities ---------------------------------------------------------------

MADE = {
    "rule": "tri(a, b) <- e(a, b).",
    "relations": {"e": {"src": "int64", "dst": "int64"}},
    "partitions": 64,
    "nulls": "drop",
    "flag": 1,
}

MESSAGES = [
    ({"partitions": 8}, "partitions=64, not 8: give another state path, or partitions=64"),
    (
        {"rule": "tri(a, b) <- e(b, a).", "partitions": 8},
        "rule='tri(a, b) <- e(a, b).', not 'tri(a, b) <- e(b, a).': give another state path, or rule='tri(",
    ),
    (
        {"relations": {"e": {"src": "int64", "dst": "string"}}},
        "relations.e.dst='int64', not 'string': give another state path, or relations.e.dst='int64'",
    ),
    (
        {"relations": {"f": {"src": "int64", "dst": "int64"}}},
        "without relations.f, not for relations.f={'src': 'int64', 'dst': 'int64'}: give another state path,"
        " or leave relations.f out",
    ),
    ({"flag": True}, "flag=1, not True: give"),
    ({"nulls": None}, "nulls='drop', not None: give"),
    ({"new": 1}, "without new, not for new=1: give another state path, or leave new out"),
]


@pytest.mark.parametrize(("changed", "message"), MESSAGES, ids=str)
def test_another_identity_is_refused(changed: dict[str, Any], message: str) -> None:
    manifest = replace(SMALL, identity=MADE, origin="/state")
    with pytest.raises(StateError) as caught:
        manifest.refuse_other({**MADE, **changed})
    start = message if message.startswith("without") else f"for {message}"
    assert str(caught.value).startswith(f"state path '/state' was made {start}")
    assert isinstance(caught.value, LftjError)


def test_an_entry_that_is_not_given_now() -> None:
    asked = {name: value for name, value in MADE.items() if name != "nulls"}
    with pytest.raises(StateError, match="made for nulls='drop', and no nulls is given now: give another"):
        replace(SMALL, identity=MADE, origin="/state").refuse_other(asked)


def test_a_long_value_is_not_repeated() -> None:
    rule = "wide(a) <- " + ", ".join(f"relation_{i}(a)" for i in range(20)) + "."
    with pytest.raises(StateError) as caught:
        replace(SMALL, identity={"rule": rule}).refuse_other({"rule": MADE["rule"]})
    assert str(caught.value).count(rule) == 1
    assert str(caught.value).endswith("give another state path, or the rule that it was made for")


@given(OBJECTS, OBJECTS)
def test_only_another_identity_is_refused(made: dict[str, Any], asked: dict[str, Any]) -> None:
    manifest = replace(SMALL, identity=made)
    manifest.refuse_other(made)
    manifest.refuse_other(dict(reversed(made.items())))
    manifest_of(manifest.to_bytes(), "f").refuse_other(made)
    if json.dumps(made, sort_keys=True) != json.dumps(asked, sort_keys=True):
        with pytest.raises(StateError):
            manifest.refuse_other(asked)


def test_tuples_are_lists() -> None:
    replace(SMALL, identity={"columns": ["a", "b"]}).refuse_other({"columns": ("a", "b")})
