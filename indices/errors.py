"""The base of every error that the project raises, and the errors of its index structures.

It stands here, below all other packages, so that one ``except`` clause holds
them all; :mod:`lftj.errors` adds the errors about data and rules.
"""

from __future__ import annotations

import os
import traceback

from indices.callers import OWN_FILES


class LftjError(Exception):
    """Base of all errors of this project."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the user's own lines, then the message as it is; none of ours between them.

        ``%xmode`` and `traceback.print_exception` show all, as everywhere else.
        """
        shown = traceback.TracebackException.from_exception(self)
        pending: list[traceback.TracebackException | None] = [shown]
        while pending:
            one = pending.pop()
            if one is not None:
                pending += [one.__cause__, one.__context__]
                one.stack = traceback.StackSummary.from_list(
                    frame for frame in one.stack if not _is_passed_over(frame.filename)
                )
        return "".join(shown.format()).rstrip().split("\n")


def _is_passed_over(file: str) -> bool:
    """Whether a line of the file says nothing to a user: it is ours, or runs the cell."""
    return file.startswith(OWN_FILES) or f"{os.sep}IPython{os.sep}" in file


class MonoidError(LftjError):
    """What is given as a monoid's operation, identity or values is none."""


class KeyOrderError(LftjError):
    """Keys are not of the shape, type or order that an index asks for."""


class CacheFolderWarning(UserWarning):
    """Compiled kernels can't be kept where they were meant to be.  Names the folder and the way out."""


class NumbaWarning(UserWarning):
    """Kernels are compiled in each process, for numba is not one that this version was tested with."""
