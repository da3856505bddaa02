"""`Contents`: what a folder says of a workspace, but for the rows of changes.

Invariant: taking an entry twice is as taking it once, so that what an interruption left half taken is
taken again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from maintenance.durable.definitions import Definition, following
from maintenance.durable.entries import Changed, Entry, Installed, Loaded, Uninstalled
from maintenance.durable.manifest import Manifest
from maintenance.heads.strategies import DEFAULT


class Contents:
    """At a manifest, and after each entry that is taken.

    Attributes:
        settings: Of the workspace, for all heads.
        relations: The base relations, as their files have them.
        changed: Those of which changes came since, with the number of the last.
        definitions: The programs that are installed.
        streams: What makes base relations streams, and where these stand.
        obsolete: Names of files that were a relation's and are no more.
    """

    def __init__(self, manifest: Manifest) -> None:
        self.settings: Mapping[str, Any] = manifest.settings
        self.relations = {loaded.relation: loaded for loaded in manifest.relations}
        self.changed: dict[str, int] = {}
        self.definitions: list[Definition] = list(manifest.definitions)
        self.streams = dict(manifest.streams)
        self.obsolete: set[str] = set()

    def take(self, entry: Entry, number: int) -> None:
        """What is so after an entry, the change of that number."""
        if isinstance(entry, Loaded):
            self._load(entry)
        elif isinstance(entry, Changed):
            self.changed.update(dict.fromkeys(entry.changes, number))
            for name, moving in entry.streams.items():
                self.streams[name] = {**self.streams[name], "moving": moving}
        else:
            for name in entry.heads if isinstance(entry, Uninstalled) else ():
                grown = self.relations.pop(name, None)
                if grown is not None:
                    self.obsolete.add(grown.file.name)
                    self.changed.pop(name, None)
            if isinstance(entry, Installed):
                for name, key in entry.keys.items():
                    self.relations[name] = replace(self.relations[name], key=tuple(key))
                self.streams.update(entry.streams)
                for loaded in entry.loaded:
                    self._load(loaded)
            self.definitions = following(self.definitions, entry, DEFAULT, number)

    def _load(self, entry: Loaded) -> None:
        before = self.relations.get(entry.relation)
        if before is not None and before.file != entry.file:
            self.obsolete.add(before.file.name)
        self.relations[entry.relation] = entry
        self.streams.pop(entry.relation, None)
        if entry.stream is not None:
            self.streams[entry.relation] = entry.stream
        self.changed.pop(entry.relation, None)

    def written(self, loaded: Loaded, before: Loaded, number: int) -> None:
        """A checkpoint has the rows of a relation, as they were after a change, in another file.

        ``before``: what there was of it then; where it was loaded anew since, the file serves the checkpoint
        alone.
        """
        if self.relations.get(loaded.relation) != before:
            self.obsolete.add(loaded.file.name)
            return
        self.relations[loaded.relation] = loaded
        if self.changed.get(loaded.relation, 0) <= number:
            self.changed.pop(loaded.relation, None)
