"""The file of a pipeline: a folder, sources, views or rules, and sinks, in TOML.

    folder = "auction"
    views = ["views/*.sql"]

    [sources.bids]
    kind = "files"
    folder = "incoming"
    key = ["id"]
    schema = { id = "int64", item = "string", price = "double" }

    [sinks.dearest]
    kind = "postgres"
    dsn = "host=db user=${DB_USER} password=${DB_PASSWORD}"
    head = "dearest"

    [run]
    listen = "127.0.0.1:8816"       # /metrics and /health
    log = "json"
    give_up_after = 600

What a section may say are the arguments of the functions that make sources and sinks; its name is that of
the source or sink, and of a source's relation.  Paths are those from the file's own folder, and ``${NAME}``
is a variable of the environment.

Invariants

1. What is wrong is said with its line, before anything is opened.
2. No value of the environment is shown, nor by what is logged: `Pipeline.hidden`.
"""

from __future__ import annotations

import importlib
import inspect
import math
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from lftj.errors import LftjError, PipelineError
from lftj.language.diagnostics import suggestion
from lftj.session.sql_statements import ViewText, views_of

if TYPE_CHECKING:
    import pyarrow as pa

    from maintenance.sinks.sink import Sink
    from maintenance.sources.source import Source

_SOURCES = ("delta", "files", "flight", "kafka", "postgres")
_SINKS = ("delta", "flight", "kafka", "parquet", "postgres", "webhook")
_KINDS = {
    "sources": {name: f"maintenance.sources.{name}:{name}" for name in _SOURCES},
    "sinks": {name: f"maintenance.sinks.{name}:to_{name}" for name in _SINKS},
}
_TOP = ("folder", "views", "rules", "run", *_KINDS)
_VARIABLE = re.compile(r"\$\{(\w+)\}")

_LEAST_SECRET = 4
"""Characters of a variable's value that is hidden: of shorter ones every text is full."""

LOGS = ("text", "json")


@dataclass(frozen=True)
class Settings:
    """How a pipeline is run.

    ``listen``: host and port of ``/metrics`` and ``/health``; None: there are none.  ``give_up_after``:
    seconds after which the run ends when something that it follows or writes to is away.
    """

    listen: tuple[str, int] | None = None
    log: str = "text"
    give_up_after: float = 600.0


@dataclass(frozen=True)
class Pipeline:
    """``path``: of its own file; ``folder``: of the workspace; ``rules``: texts by file.

    ``said``: sections as they stand in the file, by name.  ``variables``: values of the environment by name.
    """

    path: str
    folder: Path
    sources: Sequence[Source]
    views: Sequence[ViewText]
    rules: Mapping[str, str]
    sinks: Sequence[Sink]
    settings: Settings
    said: Mapping[str, Any] = field(repr=False)
    variables: Mapping[str, str] = field(repr=False)

    @property
    def parts(self) -> list[Source | Sink]:
        return [*self.sources, *self.sinks]

    def hidden(self, text: str) -> str:
        """A text with the names of variables in place of their values."""
        for name, value in sorted(self.variables.items(), key=lambda item: -len(item[1])):
            if len(value) >= _LEAST_SECRET:
                text = text.replace(value, f"${{{name}}}")
        return text

    def fixed(self) -> dict[str, object]:
        """What a running pipeline can't take in anew, by its place in the file."""
        sections = {
            f"{group}.{name}": said for group in _KINDS for name, said in self.said.get(group, {}).items()
        }
        return {"folder": self.folder, "run": self.settings, **sections}


def read_pipeline(path: str) -> Pipeline:
    """The pipeline that a file says.  Raises PipelineError, and OSError for files that can't be read."""
    return _File(path).pipeline()


class _File:
    def __init__(self, path: str) -> None:
        self._path = path
        self._above = Path(path).absolute().parent
        self._text = Path(path).read_text(encoding="utf-8")
        self._variables: dict[str, str] = {}
        try:
            self._said = tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            raise PipelineError(f"{path}: {error}") from None

    def pipeline(self) -> Pipeline:
        self._refuse_others((), self._said, _TOP)
        if "folder" not in self._said:
            self._wrong((), "there is no folder: say where the workspace is kept, as in folder = 'shop'")
        made = {group: [self._made(group, name) for name in self._sections(group)] for group in _KINDS}
        if not made["sources"]:
            self._wrong((), "there are no sources: [sources.NAME] says one")
        views = [
            view
            for file in self._files("views")
            for view in views_of(Path(file).read_text(encoding="utf-8"), file)
        ]
        rules = {file: Path(file).read_text(encoding="utf-8") for file in self._files("rules")}
        folder = self._path_of(("folder",), self._said["folder"])
        settings = self._settings()
        return Pipeline(
            self._path,
            folder,
            made["sources"],
            views,
            rules,
            made["sinks"],
            settings,
            self._said,
            self._variables,
        )

    def _settings(self) -> Settings:
        said = self._with_variables(("run",), self._said.get("run", {}))
        if not isinstance(said, dict):
            self._wrong(("run",), "run is a section, [run]")
        self._refuse_others(("run",), said, ["listen", "log", "give_up_after"])
        given = dict(said)
        if "listen" in given:
            host, colon, port = str(given["listen"]).rpartition(":")
            if not (colon and port.isascii() and port.isdigit() and int(port) < 1 << 16):
                self._wrong(("run", "listen"), "it is to be HOST:PORT, or :PORT for this machine alone")
            given["listen"] = host.strip("[]") or "127.0.0.1", int(port)
        if given.get("log", "text") not in LOGS:
            self._wrong(("run", "log"), f"it can be {' or '.join(map(repr, LOGS))}")
        seconds = given.get("give_up_after", 0)
        if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
            self._wrong(("run", "give_up_after"), "it is to be seconds, 0 or more")
        return Settings(**given)

    def _sections(self, group: str) -> Mapping[str, Any]:
        found = self._said.get(group, {})
        if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
            self._wrong((group,), f"{group} are sections, [{group}.NAME]")
        return found

    def _made(self, group: str, name: str) -> Any:
        """The source or sink of a section."""
        place, section = (group, name), self._said[group][name]
        kinds = _KINDS[group]
        kind = section.get("kind")
        if kind not in kinds:
            hint = suggestion(str(kind), list(kinds))
            self._wrong((*place, "kind"), f"its kind is {kind!r}; there are {', '.join(kinds)}{hint}")
        module, _, function = kinds[kind].partition(":")
        maker: Callable[..., Any] = getattr(importlib.import_module(module), function)
        parameters = inspect.signature(maker).parameters
        self._refuse_others(place, section, ["kind", *parameters])
        given = {
            label: self._value((*place, label), section[label], str(each.annotation))
            for label, each in parameters.items()
            if label in section
        }
        for label, each in parameters.items():
            if each.default is inspect.Parameter.empty and label not in given:
                self._wrong(place, f"{label} is missing, which {kind!r} needs")
        labels = ("name", "relation") if group == "sources" else ("name",)
        own = {label: name for label in labels if label in parameters}
        with self._placed(place):
            return maker(**{**own, **given})

    def _value(self, place: tuple[str, ...], value: Any, annotation: str) -> Any:
        """What is said, as an argument of a type."""
        value = self._with_variables(place, value)
        kind = annotation.removesuffix(" | None")
        if kind == "int":
            fits = type(value) is int
        elif kind == "Sequence[str]":
            fits = isinstance(value, list) and all(isinstance(each, str) for each in value)
        elif kind in ("pa.Schema", "Mapping[str, pa.DataType]"):
            return self._types(place, value, kind == "pa.Schema")
        elif kind.startswith("Mapping["):
            fits = isinstance(value, dict)
        else:
            fits = isinstance(value, str)
        if not fits:
            shown = {"int": "a number", "Sequence[str]": "a list of texts"}.get(kind, "a text")
            self._wrong(place, f"it is to be {'a table' if kind.startswith('Mapping[') else shown}")
        is_path = "PathLike" in annotation and "://" not in value
        return self._path_of(place, value) if is_path else value

    def _types(
        self, place: tuple[str, ...], value: Any, is_schema: bool
    ) -> pa.Schema | dict[str, pa.DataType]:
        import pyarrow as pa

        from lftj.files.csv_options import CsvOptions

        if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
            self._wrong(place, "it is to be a table of types, as in { id = 'int64', name = 'string' }")
        with self._placed(place):
            types = dict(CsvOptions(types=value).types)
        return pa.schema(types) if is_schema else types

    def _with_variables(self, place: tuple[str, ...], value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._with_variables(place, each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._with_variables(place, each) for each in value]
        if not isinstance(value, str):
            return value

        def variable(match: re.Match[str]) -> str:
            if match[1] not in os.environ:
                self._wrong(place, f"there is no variable {match[1]} in the environment")
            self._variables[match[1]] = os.environ[match[1]]
            return self._variables[match[1]]

        return _VARIABLE.sub(variable, value)

    def _path_of(self, place: tuple[str, ...], value: Any) -> Path:
        value = self._with_variables(place, value)
        if not isinstance(value, str):
            self._wrong(place, "it is to be a path")
        return self._above / value

    def _files(self, label: str) -> list[str]:
        """Those of patterns, each pattern's by their names."""
        said = self._said.get(label, [])
        patterns = [said] if isinstance(said, str) else said
        if not isinstance(patterns, list) or not all(isinstance(each, str) for each in patterns):
            self._wrong((label,), "it is to be a file, or a list of files")
        found: list[str] = []
        for pattern in patterns:
            matching = sorted(map(str, self._above.glob(pattern)))
            if not matching:
                self._wrong((label,), f"there is no file {pattern}")
            found += matching
        return found

    def _refuse_others(self, place: tuple[str, ...], said: Mapping[str, Any], known: Sequence[str]) -> None:
        for label in said:
            if label not in known:
                hint = suggestion(label, list(known)) or f": there may be {', '.join(known)}"
                self._wrong((*place, label), f"nothing is called {label!r} here{hint}")

    @contextmanager
    def _placed(self, place: tuple[str, ...]) -> Iterator[None]:
        try:
            yield
        except (LftjError, ValueError, TypeError) as error:
            self._wrong(place, str(error))

    def _wrong(self, place: tuple[str, ...], what: str) -> NoReturn:
        shown = f" {'.'.join(place)}:" if place else ""
        raise PipelineError(f"{self._path}:{self._line(place)}:{shown} {what}") from None

    def _line(self, place: tuple[str, ...]) -> int:
        """The line of a place, or of the nearest section above it, from 1."""
        found = 1
        section: tuple[str, ...] = ()
        for number, line in enumerate(self._text.splitlines(), 1):
            if header := re.match(r"\s*\[+\s*([^\]]+?)\s*\]", line):
                section = tuple(part.strip().strip("'\"") for part in header[1].split("."))
                if place[: len(section)] == section:
                    found = number
            elif (key := re.match(r"\s*['\"]?([\w-]+)['\"]?\s*[=.]", line)) and (*section, key[1]) == place:
                return number
        return found
