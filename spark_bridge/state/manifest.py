"""What one version of a maintained join's state consists of: the names of its files, and what was applied.

A manifest names every data file of one version, so the version is there when its manifest is, and not before
(:mod:`spark_bridge.state.store` puts it in place).

Invariants

1. Equal manifests are equal bytes, and bytes that are read are a manifest or
   a StateError: entries are neither guessed, left out nor added.
2. The bytes are one line, and its newline is the only one: a prefix of a
   manifest never ends like a manifest (:func:`is_cut_short`).
3. A data file that no manifest names is no part of any state.

Cost: time and bytes linear in the number of files named, some 300 bytes for a logged batch of a partition.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from lftj.errors import StateError

FORMAT = 4
"""Goes up when an entry of the JSON below changes its meaning."""

_RARE = ("streams", "late", "others")
"""Entries that are left out where they are empty."""

_MOST_REPEATED = 60
"""A value that is longer than this is shown once in a message, not twice."""


@dataclass(frozen=True)
class Logged:
    """One batch at one partition.

    ``changes`` and ``head_changes`` are files with the net changes of its input and of its output (None: no
    output is kept); ``rows`` counts the former.
    """

    changes: str
    head_changes: str | None
    rows: int


@dataclass(frozen=True)
class PartitionState:
    """A partition: files with its relations and its output at a snapshot, then what was logged since.

    ``image`` is a file with the engine's own form of the snapshot; ``rows`` counts the snapshot's input.
    """

    snapshot: str
    head: str | None
    image: str | None
    rows: int
    logged: tuple[Logged, ...] = ()

    @property
    def steps(self) -> tuple[str, ...]:
        """The files that led here: the snapshot, then the logged changes.

        Each names the state after it, and the try of a task that wrote it: no two tries write one file.
        """
        return (self.snapshot, *(logged.changes for logged in self.logged))


@dataclass(frozen=True)
class Batch:
    """What a source's batch did: files with changes of the result, and by stream with rows that were late.

    ``version``: of the manifest it made.  ``others``: the changes of the other results, by head.
    """

    version: int
    source: str
    batch_id: int
    changes: tuple[str, ...]
    late: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def changes_of(self, other: str | None) -> tuple[str, ...]:
        """The files with the changes of a result; None: of the first one."""
        return self.changes if other is None else self.others.get(other, ())


@dataclass(frozen=True)
class StateManifest:
    """One version of a state.

    ``identity``: what the state was made for, in JSON (the rule, its relations, how many partitions, ...);
    ``placement``: JSON for whoever routes rows; ``applied``: each source's last batch; ``origin``: the state
    path that it was read from, for messages only; ``state_id``: of all versions of one state, and of no
    other's, wherever it is moved; ``streams``: where streams are
    (:attr:`~maintenance.event_time.stream_state.StreamState.moving`).

    >>> manifest = StateManifest(1, {"partitions": 64}, {}, {"clicks": 7}, {}, ())
    >>> manifest_of(manifest.to_bytes(), "manifest-000000000001.json") == manifest
    True
    """

    version: int
    identity: dict[str, Any]
    placement: dict[str, Any]
    applied: dict[str, int]
    partitions: dict[str, PartitionState]
    batches: tuple[Batch, ...]
    state_id: str = ""
    streams: Mapping[str, list[int | None]] = field(default_factory=dict)
    origin: str = field(default="", compare=False, repr=False)

    def files(self) -> set[str]:
        """The names of all data files that this version needs."""
        named: set[str | None] = {file for batch in self.batches for file in batch.changes}
        for batch in self.batches:
            named |= {file for by in (batch.late, batch.others) for files in by.values() for file in files}
        for state in self.partitions.values():
            named |= {state.snapshot, state.head, state.image}
            for logged in state.logged:
                named |= {logged.changes, logged.head_changes}
        return {file for file in named if file is not None}

    def to_bytes(self) -> bytes:
        """One line of JSON with sorted keys.  Raises TypeError or ValueError if ``identity`` is no JSON."""
        entries = {name: value for name, value in _said(self).items() if name != "origin"}
        return f"{_text({'format': FORMAT, **entries})}\n".encode()

    def seen_by(self, other: str | None) -> StateManifest:
        """The same, as if another result were the only one; None: the first one is."""
        batches = (replace(it, changes=it.changes_of(other), others={}) for it in self.batches)
        return replace(self, batches=tuple(batches))

    def refuse_other(self, identity: Mapping[str, Any]) -> None:
        """Raise StateError if the state was made for something else.

        Names the first entry that differs, in the order of ``identity``: put what decides the rest first.

        >>> manifest = StateManifest(1, {"partitions": 64}, {}, {}, {}, (), origin="/state")
        >>> manifest.refuse_other({"partitions": 8})
        Traceback (most recent call last):
        lftj.errors.StateError: state path '/state' was made for partitions=64, not 8: give another state
        path, or partitions=64
        """
        difference = _difference(json.loads(_text(self.identity)), json.loads(_text(dict(identity), False)))
        if difference:
            path = f"state path {self.origin!r}" if self.origin else "the state"
            raise StateError(f"{path} was made {difference}")


def is_cut_short(data: bytes) -> bool:
    """Whether bytes are the beginning of a manifest rather than a whole one."""
    return not data.endswith(b"\n")


def manifest_of(data: bytes, file: str, origin: str = "") -> StateManifest:
    """The manifest that was written as these bytes to ``file``.  Raises StateError, which names the file."""
    try:
        if is_cut_short(data):
            raise ValueError("it was cut short")
        entries = json.loads(data.decode())
        if (
            isinstance(entries, dict)
            and isinstance(entries.get("format"), int)
            and entries["format"] != FORMAT
        ):
            raise StateError(
                f"{file}: its format is {entries['format']}, and this version of lftj reads format {FORMAT}:"
                " use the version that wrote it, or another state path"
            )
        return _manifest(entries, origin)
    except (ValueError, RecursionError) as error:
        raise StateError(
            f"{file}: the manifest is damaged ({error}):"
            " put back a copy of it, or start anew with another state path and checkpoint"
        ) from None


# -- from and to JSON ---------------------------------------------------------


def _text(value: Any, sort_keys: bool = True) -> str:
    return json.dumps(value, sort_keys=sort_keys, allow_nan=False, separators=(",", ":"), default=_entries_of)


def _entries_of(value: Any) -> dict[str, Any]:
    if isinstance(value, Logged | PartitionState | Batch):
        return _said(value)
    raise TypeError(f"{value!r} has no place in a manifest, which is JSON")


def _said(value: Any) -> dict[str, Any]:
    """What there is of streams and of other results only where there are some."""
    return {name: entry for name, entry in vars(value).items() if entry or name not in _RARE}


def _with_rare(entries: Any, *names: str) -> dict[str, Any]:
    """The entries of a JSON object, those included that are left out where they are empty."""
    return {**{name: {} for name in names}, **entries} if isinstance(entries, dict) else entries


def _taken(entries: Any, what: str, **kinds: Any) -> dict[str, Any]:
    """The entries of a JSON object that has just these, of these types."""
    if not isinstance(entries, dict):
        raise ValueError(f"{what} is no object")
    if entries.keys() != kinds.keys():
        raise ValueError(f"{what} has other entries than {', '.join(kinds)}")
    for name, kind in kinds.items():
        if not isinstance(entries[name], kind) or isinstance(entries[name], bool):
            raise ValueError(f"{what} has an entry {name!r} of another type")
    return entries


_T = TypeVar("_T")


def _each(values: list[Any], make: Callable[[Any], _T]) -> tuple[_T, ...]:
    return tuple(make(value) for value in values)


def _file(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no file name")
    return value


def _logged(entries: Any) -> Logged:
    taken = _taken(entries, "a logged batch", changes=str, head_changes=str | None, rows=int)
    return Logged(**taken)


def _partition(entries: Any) -> PartitionState:
    optional = str | None
    kinds = {"snapshot": str, "head": optional, "image": optional, "rows": int, "logged": list}
    taken = _taken(entries, "a partition", **kinds)
    return PartitionState(**{**taken, "logged": _each(taken["logged"], _logged)})


def _batch(entries: Any) -> Batch:
    kinds = {"version": int, "source": str, "batch_id": int, "changes": list, "late": dict, "others": dict}
    taken = _taken(_with_rare(entries, "late", "others"), "a batch", **kinds)
    late, others = (_files_by_name(taken[name], name) for name in ("late", "others"))
    return Batch(**{**taken, "changes": _each(taken["changes"], _file), "late": late, "others": others})


def _files_by_name(entries: Any, what: str) -> dict[str, tuple[str, ...]]:
    files = _taken(entries, what, **dict.fromkeys(entries, list))
    return {name: _each(its, _file) for name, its in files.items()}


def _manifest(entries: Any, origin: str) -> StateManifest:
    objects = dict.fromkeys(("identity", "placement", "applied", "partitions"), dict)
    kinds = {"format": int, "version": int, **objects, "batches": list, "state_id": str, "streams": dict}
    taken = dict(_taken(_with_rare(entries, "streams"), "the manifest", **kinds))
    del taken["format"]
    _taken(taken["streams"], "streams", **dict.fromkeys(taken["streams"], list))
    _taken(taken["applied"], "applied", **dict.fromkeys(taken["applied"], int))
    taken["partitions"] = {name: _partition(state) for name, state in taken["partitions"].items()}
    taken["batches"] = _each(taken["batches"], _batch)
    return StateManifest(**taken, origin=origin)


# -- identities ---------------------------------------------------------------


def _difference(made: dict[str, Any], asked: dict[str, Any], above: str = "") -> str | None:
    """How the first entry that differs does, from "for" or "without" on; None if all are equal."""
    for key in (*asked, *(key for key in made if key not in asked)):
        name = above + key
        if key not in made:
            return f"without {name}, not for {name}={asked[key]!r}: {_way_out(f'leave {name} out')}"
        if key not in asked:
            same = _way_out(_same(name, made[key]))
            return f"for {name}={made[key]!r}, and no {name} is given now: {same}"
        if isinstance(made[key], dict) and isinstance(asked[key], dict):
            inside = _difference(made[key], asked[key], f"{name}.")
            if inside:
                return inside
        elif _text(made[key]) != _text(asked[key]):  # texts, for 1 == True
            return f"for {name}={made[key]!r}, not {asked[key]!r}: {_way_out(_same(name, made[key]))}"
    return None


def _same(name: str, value: Any) -> str:
    shown = f"{name}={value!r}"
    return shown if len(shown) <= _MOST_REPEATED else f"the {name} that it was made for"


def _way_out(other: str) -> str:
    return f"give another state path, or {other}"
