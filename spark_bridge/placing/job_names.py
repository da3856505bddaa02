"""What Spark's jobs do for us, in words: in the UI, as a tag, and beside errors.

Classic sessions have a description of a job, which the UI lists; all have tags, which the UI of Spark Connect
lists, and by which :meth:`~pyspark.sql.SparkSession.interruptTag` ends jobs.  Both belong to a thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

DESCRIPTION = "spark.job.description"


@contextmanager
def jobs_named(session: SparkSession, name: str) -> Iterator[None]:
    """Within the block this thread's jobs have a name; afterwards the thread has what it had before.

    An error that leaves the block has a note with the name.
    """
    tag = name.replace(",", ";")  # Spark refuses commas in tags
    is_new = tag not in session.getTags()
    session.addTag(tag)
    try:
        with _described(session, name):
            yield
    except Exception as error:
        error.add_note(f"This was: {name}")
        raise
    finally:
        if is_new:
            session.removeTag(tag)


@contextmanager
def _described(session: object, text: str) -> Iterator[None]:
    if not isinstance(session, SparkSession):  # that of Connect is no subclass, and has no description
        yield
        return
    context = session.sparkContext
    before = context.getLocalProperty(DESCRIPTION)
    context.setJobDescription(text)
    try:
        yield
    finally:
        context.setJobDescription(before)  # type: ignore[arg-type]  # None takes it away
