"""Exceptions and warnings of radmm.

Messages are those of the command line: they name the file, line, key, column or party, and what to do.
"""

from __future__ import annotations


class RadmmError(Exception):
    """Base class of all errors that this package raises on purpose."""


class StudyError(RadmmError, ValueError):
    """A study or site file is invalid, or cannot be used as it is."""

    #: The file, or ``""`` where a study does not come from one.
    file: str
    #: The line in the file, from 1.
    line: int | None
    #: The key at fault.
    key: str | None

    def __init__(self, message: str, *, file: str = "", line: int | None = None, key: str | None = None) -> None:
        super().__init__(message)
        self.file, self.line, self.key = file, line, key


class DataError(RadmmError, ValueError):
    """Rows cannot be read, or do not fit their study. The message may quote a value."""


class BudgetExceeded(RadmmError):
    """A limit or a total would be exceeded. Nothing was asked of the rows, and nothing was charged."""

    #: The total of everything on record, if that is what leaves too little.
    spent: float | None
    #: The largest ε allowed, at ``delta``.
    limit: float | None
    delta: float | None

    def __init__(
        self,
        message: str,
        *,
        spent: float | None = None,
        limit: float | None = None,
        delta: float | None = None,
    ) -> None:
        super().__init__(message)
        self.spent, self.limit, self.delta = spent, limit, delta


class LedgerError(RadmmError):
    """A ledger cannot be read or written."""


class LedgerInUse(LedgerError):
    """Another process uses the ledger."""


class PartyError(RadmmError):
    """A party cannot start, or cannot go on."""


class VerificationError(RadmmError):
    """Files that parties show cannot be checked."""


class StudyWarning(UserWarning):
    """A study can be run, and looks like a mistake."""


class PublicBoundsWarning(UserWarning):
    """Bounds or vocabularies were read off the rows, and so are not public: no guarantee covers them."""


class LedgerWarning(UserWarning):
    """Charges are not kept: other fits on the same rows do not count them."""


class SearchWarning(UserWarning):
    """A search or cross-validation compares fits on the same rows; its scores and its choice are not covered by ε."""


class DroppedRowsWarning(UserWarning):
    """Rows were left out because a value is missing."""
