"""Rows and folders that tests share."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import radmm
from radmm.datasets import Dataset


@pytest.fixture(scope="session")
def adult() -> Dataset:
    return radmm.datasets.load_adult(library="pandas")


@pytest.fixture(scope="session")
def clinic() -> Dataset:
    return radmm.datasets.load_clinic(library="pandas")


@pytest.fixture
def numbers() -> tuple[Any, Any]:
    """Rows of four numbers within [-1, 1], of which the first two tell the label."""
    rng = np.random.default_rng(7)
    X = rng.uniform(-1, 1, (3000, 4))
    return X, np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.fixture
def study() -> radmm.Study:
    """A small study on the built-in table of the clinic."""
    return radmm.Study(
        {
            "name": "clinic",
            "data": {"builtin": "clinic", "test": {"last": 400}},
            "network": {"nodes": 5, "topology": "ring"},
            "privacy": {"epsilon": 1.0, "delta": 1e-5},
            "run": {"repetitions": 2, "seed": 3},
        }
    )


@pytest.fixture(autouse=True)
def no_unexpected_warning() -> Any:
    """Warnings are part of the interface: those that no test expects are errors."""
    with warnings.catch_warnings():
        for category in (radmm.StudyWarning, radmm.PublicBoundsWarning, radmm.SearchWarning):
            warnings.simplefilter("error", category)
        warnings.simplefilter("ignore", radmm.LedgerWarning)
        yield
