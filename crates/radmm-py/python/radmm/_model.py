"""Trained models."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radmm import _radmm
from radmm._guarantee import RELATION, Guarantee
from radmm._rows import Rows, table_of


class Model:
    """A linear model with the meaning of its columns, as a ``model.json`` holds it."""

    def __init__(self, native: _radmm.Model) -> None:
        self._native = native

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Model:
        """Reads a ``model.json``."""
        return cls.parse(Path(path).read_text(encoding="utf-8"), str(path))

    @classmethod
    def parse(cls, text: str, name: str = "model.json") -> Model:
        """Reads the text of a ``model.json``, whose name in messages is ``name``."""
        return cls(_radmm.Model.parse(text, name))

    def to_json(self) -> str:
        """Returns the text of the ``model.json``."""
        return self._native.to_json()

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the ``model.json``."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    @property
    def columns(self) -> list[str]:
        """The names of the encoded columns; the last is ``(intercept)`` if there is one."""
        return self._native.columns

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weights of the encoded columns."""
        return self._native.weights

    @property
    def has_intercept(self) -> bool:
        """Whether the last column is constant."""
        return self._native.has_intercept

    @property
    def has_probabilities(self) -> bool:
        """Whether the loss tells probabilities."""
        return self._native.has_probabilities

    @property
    def party(self) -> str:
        """The party that trained it."""
        return self._native.party

    @property
    def iterations(self) -> int:
        """The number of iterations."""
        return self._native.iterations

    @property
    def guarantee(self) -> Guarantee | None:
        """The guarantee for the rows that it was trained on, if there is one."""
        found = self._native.guarantee
        if found is None:
            return None
        epsilon, delta, protects, caveat = found
        scope = "the total over every message of the run"
        return Guarantee(epsilon, delta, RELATION, scope, protects, caveat)

    def scores(self, rows: Rows) -> NDArray[np.float64]:
        """Returns a score for every row, positive for the positive class; NaN for a row with a missing value."""
        return self._native.scores(table_of(rows))

    def probabilities(self, rows: Rows) -> NDArray[np.float64]:
        """Returns the probability of the positive class for every row; NaN for a row with a missing value."""
        return self.probabilities_of(self.scores(rows))

    def probabilities_of(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the probability of the positive class at each score."""
        if not self.has_probabilities:
            raise ValueError("this model's loss has no probabilities; train with loss='cut-logistic' or 'logistic'")
        return self._native.probabilities(scores)

    def __reduce__(self) -> tuple[Callable[..., Model], tuple[Any, ...]]:
        return (Model.parse, (self.to_json(),))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        return f"<radmm.Model of {self.party}: {len(self.columns)} columns>"
