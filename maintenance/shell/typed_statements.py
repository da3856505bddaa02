"""What is typed at the prompt, statement by statement: with colours, completion and history on a terminal.

A statement may go over lines: Enter ends it where it is whole, or where the line before is empty.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lftj.session.session import Session, is_complete
from lftj.session.sql_statements import is_sql

if TYPE_CHECKING:
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

PROMPT, MORE = "lftj> ", "  ... "

COLOURS = {"keyword": "ansimagenta", "name.function": "ansicyan", "literal": "ansigreen", "comment": "italic"}
"""By kinds of Pygments' tokens: the terminal's own colours, which can be read on its background."""


def reader(session: Session) -> Callable[[], str]:
    """A function that gives the next statement as it is typed.

    Lines are edited on a terminal, by prompt_toolkit; else, or where that is missing, read as they come.
    Raises KeyboardInterrupt where what is being typed is dropped, EOFError at the end.
    """
    if sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        try:
            return editing(session)
        except ImportError:
            pass
    return _reading()


class _Ends:
    """Says at the first statement that goes on what would end it; whoever knows it reads it no more."""

    def __init__(self) -> None:
        self.is_told = False

    def tell(self, text: str) -> None:
        if not self.is_told:
            end = "SQL ends with a semicolon" if is_sql(text) else "a rule ends with a dot"
            click.echo(f"{end}; it goes on")
            self.is_told = True


def _is_over(text: str) -> bool:
    """``text`` ends with the line that Enter has ended."""
    return not text.strip() or is_complete(text) or text.endswith("\n\n")


def _reading() -> Callable[[], str]:
    ends = _Ends()

    def read() -> str:
        text = ""
        while True:
            text += input(MORE if text else PROMPT) + "\n"
            if _is_over(text):
                return text
            ends.tell(text)

    return read


def editing(session: Session) -> Callable[[], str]:
    """Raises ImportError where prompt_toolkit is not there."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.lexers import PygmentsLexer
    from prompt_toolkit.output import ColorDepth
    from prompt_toolkit.shortcuts import CompleteStyle
    from prompt_toolkit.styles import Style

    from lftj.session.completion import completions
    from lftj.session.statement_lexer import StatementLexer

    class Names(Completer):
        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
            word, names = completions(session.database, document.text_before_cursor)
            yield from (Completion(name, -len(word)) for name in names)

    prompt: PromptSession[str] = PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=MORE,
        lexer=PygmentsLexer(StatementLexer),
        style=Style.from_dict({f"pygments.{kind}": colour for kind, colour in COLOURS.items()}),
        include_default_pygments_style=False,
        color_depth=ColorDepth.from_env(),  # which knows NO_COLOR
        completer=Names(),
        complete_while_typing=False,
        complete_style=CompleteStyle.READLINE_LIKE,  # at once: the others drop it where typing goes on
        history=_history(),
        key_bindings=_keys(_Ends()),
    )
    return prompt.prompt


def _keys(ends: _Ends) -> KeyBindings:
    """Enter ends a statement that is whole, and else begins a line."""
    from prompt_toolkit.application import run_in_terminal
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if _is_over(f"{buffer.text}\n"):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")
            if not ends.is_told:
                run_in_terminal(lambda: ends.tell(buffer.text))

    return keys


def _history() -> History:
    """Of this session and those before it, for nobody else to read; of this one where no file can be."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    folder = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "lftj"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "history").touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(folder / "history"))
