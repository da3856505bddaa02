"""The base of every error that the project raises, and the errors of its index structures.

It stands here, below all other packages, so that one ``except`` clause holds
them all; :mod:`lftj.errors` adds the errors about data and rules.
"""

from __future__ import annotations


class LftjError(Exception):
    """Base of all errors of this project."""


class MonoidError(LftjError):
    """What is given as a monoid's operation, identity or values is none."""


class KeyOrderError(LftjError):
    """Keys are not of the shape, type or order that an index asks for."""


class CacheFolderWarning(UserWarning):
    """Compiled kernels can't be kept where they were meant to be.  Names the folder and the way out."""


class NumbaWarning(UserWarning):
    """Kernels are compiled in each process, for numba is not one that this version was tested with."""
