"""``key orders(id).``: what a program declares of loaded relations, checked against their schemas."""

from __future__ import annotations

from collections.abc import Mapping

from lftj.errors import RuleError, UnknownColumnError, UnknownRelationError
from lftj.language.diagnostics import error_at, suggestion
from lftj.language.syntax import DeclaredStream, Key, Program
from lftj.values.schema import Schema


def check_keys(program: Program, catalog: Mapping[str, Schema]) -> None:
    """Raise RuleError, with a caret under the place, where a relation has not the key that is declared."""
    for key in program.keys:
        schema = declared_of(program, key, catalog)
        if schema.key != key.names:
            names = ", ".join(map(repr, key.names))
            message = f"'{key.relation}' was loaded without this key: load it with key=[{names}]"
            if schema.key:
                message = f"the key of '{key.relation}' is {', '.join(schema.key)}"
            raise error_at(RuleError, program.text, key.span, message)


def declared_of(program: Program, key: Key | DeclaredStream, catalog: Mapping[str, Schema]) -> Schema:
    """The schema of the loaded relation that a declaration is about.  Raises as :func:`check_keys`."""
    heads = {head.relation for rule in program.rules for head in rule.heads}
    if key.relation in heads or key.relation not in catalog:
        hint = suggestion(key.relation, list(catalog))
        what = "key" if isinstance(key, Key) else "stream"
        message = f"a {what} is of a relation that is loaded, and '{key.relation}' is none{hint}"
        raise error_at(UnknownRelationError, program.text, key.span, message)
    schema = catalog[key.relation]
    known = [column.name for column in schema.shown.columns]
    for column in key.columns:
        if column.name not in known:
            message = f"'{key.relation}' has no column '{column.name}'{suggestion(column.name, known)}"
            raise error_at(UnknownColumnError, program.text, column.span, message)
    return schema
