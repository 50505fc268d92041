"""Private decentralised learning: one linear classifier from the rows of many, under one differential-privacy guarantee.

Estimators for scikit-learn
    `PrivateLinearClassifier` learns from one party's rows, with secret noise and a ledger: it protects. `RecycledADMMClassifier`
    simulates all parties of a network in this process, and protects nobody.
Studies
    `Study` is what all parties agree on: priced, planned, certified and simulated here, compared by `compare`. `verify` checks the
    files that real parties show.
Parties
    `Party` is one party of a real network, for a transport of your own.

Every ε is a total, and a `Guarantee` names its δ, its neighbouring relation, what it covers, and whether it protects anybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from radmm import datasets, plot
from radmm._guarantee import Guarantee
from radmm._model import Model
from radmm._party import Party, PartyStatus
from radmm._radmm import __version__
from radmm._results import Bill, Certificate, ComparisonResult, Figure, Plan, RunResult, Verification
from radmm._study import Study, compare, verify
from radmm.errors import (
    BudgetExceeded,
    DataError,
    DroppedRowsWarning,
    LedgerError,
    LedgerInUse,
    LedgerWarning,
    PartyError,
    PublicBoundsWarning,
    RadmmError,
    SearchWarning,
    StudyError,
    StudyWarning,
    VerificationError,
)

if TYPE_CHECKING:
    from radmm.sklearn import PrivateLinearClassifier, RecycledADMMClassifier

__all__ = [
    "Bill",
    "BudgetExceeded",
    "Certificate",
    "ComparisonResult",
    "DataError",
    "DroppedRowsWarning",
    "Figure",
    "Guarantee",
    "LedgerError",
    "LedgerInUse",
    "LedgerWarning",
    "Model",
    "Party",
    "PartyError",
    "PartyStatus",
    "Plan",
    "PrivateLinearClassifier",
    "PublicBoundsWarning",
    "RadmmError",
    "RecycledADMMClassifier",
    "RunResult",
    "SearchWarning",
    "Study",
    "StudyError",
    "StudyWarning",
    "Verification",
    "VerificationError",
    "__version__",
    "compare",
    "datasets",
    "plot",
    "verify",
]

#: Imported when they are first used: scikit-learn takes a second.
_ESTIMATORS = ("PrivateLinearClassifier", "RecycledADMMClassifier")


def __getattr__(name: str) -> Any:
    if name in _ESTIMATORS:
        from radmm import sklearn

        return getattr(sklearn, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
