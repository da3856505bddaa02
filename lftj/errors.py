"""Every error that the project raises, under one base.

Messages name the thing, the place and the way out.  Errors about a rule carry
the rule's text with a caret under the place (see `lftj.language.diagnostics`).
"""

from __future__ import annotations

from collections.abc import Mapping

from indices.errors import CacheFolderWarning as CacheFolderWarning
from indices.errors import LftjError
from indices.errors import NumbaWarning as NumbaWarning

# -- data -------------------------------------------------------------------


class DataError(LftjError):
    """Input data cannot be taken as it is; nothing was loaded."""


class SourceError(DataError):
    """A file or object cannot be read as a table (missing, truncated, ragged, of an unknown kind)."""


class RejectedRowError(SourceError):
    """A row of a source that a workspace follows can't be taken: a wrong type, a missing key, no JSON.

    ``part``, ``position``, ``row``: where it stands: a partition and an offset, a file and a byte, a server's
    log and a place in it; and which one it is there, from 0.
    """

    def __init__(self, message: str, part: str, position: int, row: int) -> None:
        super().__init__(message)
        self.part, self.position, self.row = part, position, row

    def __reduce__(self) -> tuple[type[RejectedRowError], tuple[str, str, int, int]]:
        return RejectedRowError, (str(self), self.part, self.position, self.row)


class SourceAwayError(SourceError):
    """What a source follows does not answer, or has gone away: the next pull goes on behind the cursor."""


class UnusableNameError(DataError):
    """A relation or column has a name that no rule can use.

    ``renames``: of columns, the nearest usable name by name.
    """

    def __init__(self, message: str, renames: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.renames = dict(renames or {})


class NullError(DataError):
    """A column holds NULL and the caller did not ask to drop such rows."""


class NanError(DataError):
    """A floating-point column that a rule uses as a key holds NaN."""


class UnsupportedTypeError(DataError):
    """A column's Arrow type has no domain (nested types, for example)."""


class RangeError(DataError):
    """A value, or the result of arithmetic or of an aggregate, does not fit its type."""


class FunctionalConflictError(DataError):
    """A functional predicate has two values for one key."""


class StreamError(DataError):
    """A stream can't be as it is declared, or can't take a row's time, or a time for its clock.

    ``time``: the number of the transaction in a batch, from 0.
    """

    time = 0


class KeyConflictError(DataError):
    """A table with a key would have two rows of one key, or is asked for what a key can't be.

    ``time``: the number of the transaction in a batch, from 0.
    """

    time = 0


# -- rules ------------------------------------------------------------------


class RuleError(LftjError):
    """A rule is wrong.  ``span`` is the half-open range of offsets into the program's text.

    ``reason``: the message without the line of the text that it shows; empty where it shows none.
    """

    reason = ""

    def __init__(self, message: str, span: tuple[int, int] | None = None) -> None:
        super().__init__(message)
        self.span = span


class RuleSyntaxError(RuleError):
    """The text is not a program of the rule language."""


class UnknownRelationError(RuleError, KeyError):
    """A rule or call names a relation that is neither loaded nor derived.

    It is a KeyError too, as mappings of relations by name promise.
    """

    __str__ = LftjError.__str__  # a KeyError would show the message in quotes


class UnknownColumnError(RuleError):
    """A rule or call names a column that the relation does not have."""


class ArityError(RuleError):
    """An atom, a head or a tuple that is looked for has the wrong number of terms."""


class UnboundVariableError(RuleError):
    """A variable of a head, comparison or aggregate is bound by no positive atom or assignment."""


class UnsafeNegationError(RuleError):
    """A variable occurs in negated atoms only."""


class StratificationError(RuleError):
    """A relation depends on its own negation or aggregate."""


class RecursionNotSupportedError(RuleError):
    """A relation depends on itself, and no column of it stays: it can't be kept on Spark's executors."""


class TypeClashError(RuleError):
    """Two columns, or a column and a constant, meet but have no domain in common."""


class ParameterError(RuleError):
    """A parameter of a rule has no value, or one that it can't have."""


class OrderError(RuleError):
    """A key order given by the caller does not fit the rule."""


class SqlError(RuleError):
    """A text is no SQL, or names what is not there; its ``span`` is of the SQL."""


class UnsupportedSqlError(SqlError):
    """SQL that no rules say: the message names the construct, its place and what to write instead."""


class EvaluationError(LftjError):
    """A rule failed on a row: division by zero, for example.  Names the rule and the row."""


class RoundLimitError(EvaluationError):
    """A recursion goes on beyond ``max_rounds``.  Names the rule and the last new tuple."""


class ViewBudgetError(EvaluationError):
    """The views of heads that were to be kept by them take more memory than ``view_bytes``."""


class AggregateError(EvaluationError):
    """A user's aggregate can't be registered or compiled, or its function raised.

    Then names the aggregate, the head and its group, the two operands and what was raised.
    """


class FunctionError(EvaluationError):
    """A user's function can't be registered, is not registered, or does not give what it declares.

    Names the function; where a row is to blame, the rule and the row; what was raised is its cause.
    """


class ChangeError(DataError):
    """A transaction's change can't be taken: a derived relation, a wrong arity, type or weight."""


class TransactionError(LftjError):
    """A transaction is used when it is over, or reads what it has changed."""


class ConflictError(TransactionError):
    """What a transaction's SQL read, or what it is to erase, was changed by another one: run it again."""


class SinkError(LftjError):
    """What a head is written to can't be written, or holds what another workspace wrote."""


class SinkAwayError(SinkError):
    """What a sink writes to does not answer, or has gone: the next push goes on behind what is written."""


class PipelineError(LftjError):
    """The file of a pipeline is wrong, and the message names the file, the line and the place in it.

    Or what the pipeline follows or writes to was away for longer than the file says.
    """


class CircuitError(LftjError):
    """A circuit over streams is not whole, or a function in it is not what its author claims."""


class StrategyError(LftjError):
    """A strategy does not exist, or can't keep the rule that it was asked to keep."""


class VerificationError(LftjError):
    """A maintained head differs from its recomputation.  Names the head and a tuple."""


class LimitError(LftjError):
    """The input is too large for the call (``Database.trace`` on large data, for example).

    Or an answer takes longer, or finds more, than whoever serves it allows.
    """


class OutOfMemoryError(LftjError, MemoryError):
    """A result, or what is needed for it, does not fit into memory.  All is as it was before the call."""


class ImageError(LftjError):
    """An engine image can't be read: of other software, or damaged.  Nothing was made of it."""


# -- workspaces in folders -----------------------------------------------------


class DurabilityError(LftjError):
    """A workspace's folder can't be opened, or a change can't be written to it; then it was refused."""


class FolderInUseError(DurabilityError):
    """Another process, or another workspace of this one, has the folder open."""


class DamagedFolderError(DurabilityError):
    """A file of the folder is not as it was written.  Names the file and the place in it."""


class ClosedError(DurabilityError):
    """The workspace was closed, or had to close because its changes could not be written any more."""


class CursorError(LftjError):
    """The changes of a head behind a version are not kept any more, or there is no such version.

    ``oldest``: the oldest version behind which they can be asked for.
    """

    def __init__(self, message: str, oldest: int) -> None:
        super().__init__(message)
        self.oldest = oldest

    def __reduce__(self) -> tuple[type[CursorError], tuple[str, int]]:
        return CursorError, (str(self), self.oldest)


class ServiceError(LftjError):
    """A service can't be begun so, or what it was asked for is no request."""


# -- Spark ------------------------------------------------------------------


class StateError(LftjError):
    """The state of a maintained join can't be used.

    It is of another rule, damaged, or used by another application.
    """


# -- warnings ---------------------------------------------------------------


class CartesianProductWarning(UserWarning):
    """A rule's body falls into parts that share no variable; the result is their product."""


class DamagedFolderWarning(UserWarning):
    """A workspace's folder has bytes behind its last change that are no whole ones.

    As where the machine stopped while they were written, or as after damage, which nothing tells apart.
    Names the file and the place, the version that is opened, and one that is known to have been there at
    least.
    """


class EqualRowsWarning(UserWarning):
    """Rows of a source are equal, and the relation that was loaded holds them once."""


class HousekeepingWarning(UserWarning):
    """A commit stands, but tidying up after it failed; it is tried again with the next."""


class NoCycleWarning(UserWarning):
    """A join in Spark has no cycle; where it joins by keys Spark's own plan is quicker."""


class SubscriberWarning(UserWarning):
    """A subscriber raised after a commit, which stands.  Names the subscriber and the error."""


class UnnamedIndexWarning(UserWarning):
    """The index of a pandas frame has values that are no numbers, and was left out, for it has no name."""
