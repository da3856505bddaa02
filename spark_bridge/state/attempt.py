"""A try of a batch, as the driver sees it: nothing is left of it, in Spark and in the state, when it fails.

    begin  ->  (job, commit)  ->  end
                 | an error, Ctrl-C, a query that is stopped
                 v
               end  ->  what still runs is interrupted  ->  files dropped

That an action raises does not say that its tasks are over: when one has failed for good, Spark asks the
others to stop and does not wait for them.  Nor does anybody here: the order of the steps makes late tasks
harmless (:mod:`spark_bridge.state.store`, invariant 5), and interrupting them only saves their work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyspark.sql import SparkSession

from lftj.errors import LftjError, StateError
from spark_bridge.state.store import StateStore


@contextmanager
def attempt(store: StateStore, session: SparkSession, version: int) -> Iterator[str]:
    """A try to make a version, within a ``with`` block; gives its token, which is to be ended after a commit.

    Whatever the block raises is raised, but StateError if another application has made the version, which
    ends the tasks of this one.
    """
    token = store.begin(version)
    try:
        with _interrupted_when_it_fails(store, session, token):
            yield token
    except BaseException as error:
        with suppress(StateError):  # what can't be deleted now is swept after a later batch
            store.drop(token)
        if isinstance(error, Exception) and not isinstance(error, LftjError):
            store.refuse_overtaken(version)
        raise


@contextmanager
def _interrupted_when_it_fails(store: StateStore, session: SparkSession, token: str) -> Iterator[None]:
    """Spark's jobs of this thread within the block have the token as their tag."""
    session.addTag(token)
    try:
        yield
    except BaseException:
        with suppress(StateError):
            store.end(token)
        with suppress(Exception):  # the session itself may be what has failed
            session.interruptTag(token)
            session.removeTag(token)
        raise
    session.removeTag(token)
