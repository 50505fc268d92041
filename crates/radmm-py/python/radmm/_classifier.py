"""What the estimators have in common: rows and labels in, scores and classes out."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Real
from types import FrameType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from radmm import _columns, _radmm
from radmm._columns import Bounds, Categories, Columns, Encoding, Meaning, Total
from radmm._guarantee import Guarantee
from radmm._model import Model
from radmm._rows import Rows, arrow_table, dense_table, is_arrow, is_sparse, sparse_table, with_codes
from radmm._study import toml_of
from radmm._workers import CountedRows, Schema, WorkerRows
from radmm.errors import DataError, DroppedRowsWarning, SearchWarning, StudyWarning

#: The losses that tell probabilities.
_LOSSES_WITH_PROBABILITIES = ("logistic", "cut-logistic")

_LOSSES = ("auto", "smooth-hinge", *_LOSSES_WITH_PROBABILITIES)

#: The name of the label's column, unless a feature has it.
_LABEL = "label"

#: The texts that a draft takes for missing values.
_MISSING = frozenset(("?", "", "NA", "N/A", "NaN", "nan", "null", "NULL"))

#: The modules of scikit-learn that fit an estimator many times, to choose, to score or to combine.
_SEARCHES = frozenset(
    f"sklearn.{name}"
    for name in (
        "calibration",
        "ensemble._bagging",
        "ensemble._stacking",
        "ensemble._voting",
        "ensemble._weight_boosting",
        "feature_selection._rfe",
        "feature_selection._sequential",
        "model_selection._classification_threshold",
        "model_selection._search",
        "model_selection._search_successive_halving",
        "model_selection._validation",
        "multiclass",
    )
)


def _has_probabilities(estimator: LinearClassifier) -> bool:
    if hasattr(estimator, "model_"):
        return estimator.model_.has_probabilities
    return estimator.loss in _LOSSES_WITH_PROBABILITIES


class LinearClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier for two classes, whose columns have public meanings."""

    epsilon: float
    delta: float
    bounds: Bounds | None
    categories: Categories | None
    encoding: Encoding
    loss: str
    n_jobs: int | None
    verbose: int

    classes_: NDArray[Any]
    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    columns_: list[str]
    model_: Model
    guarantee_: Guarantee
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    n_iter_: int

    _names: list[str]
    _types: dict[str, str]
    _is_numbered: bool
    _label: str

    def _prepare(self, X: Rows, y: Any, left_out: str | None = None) -> tuple[_radmm.Table, Meaning]:
        """Checks rows and labels. Returns them as a table, and the meaning of its columns but the one that is left out."""
        self._check_parameters()
        _warn_of_search()
        table = self._features(X, reset=True)
        self._warn_of_delta(table.rows)
        if y is None:
            name = type(self).__name__
            raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.")
        y = column_or_1d(as_array(y), warn=True)
        check_consistent_length(np.empty(table.rows), y)
        if y.dtype == object and any(one is None or one != one for one in y):
            raise ValueError("y contains NaN or None: leave out the rows without a label")
        codes = self._encode_classes(y)
        self._label = unused_name(_LABEL, self._names)
        self._names = [name for name in self._names if name != left_out]
        texts = _class_texts(self.classes_)
        table = with_codes(table, self._label, codes, texts)
        if self._is_numbered:
            width = self.n_features_in_
            return table, _columns.numbered(width, texts[1], self.bounds, self.categories)
        columns = Columns(self._names, self._types, self._label, texts)
        total = Total(self.epsilon, self.delta, table.rows, self._is_answered_once())
        encoding = _columns.encoding_of(self.encoding, columns, self.categories, total)
        return table, _columns.named(table, columns, self.bounds, self.categories, encoding)

    def _prepare_worked(self, X: WorkerRows, label: Any) -> tuple[CountedRows, Meaning]:
        """Checks rows that workers hold, and counts them. ``label`` is the name of the label's column."""
        self._check_parameters()
        _warn_of_search()
        if not isinstance(label, str):
            raise ValueError(f"y: rows that workers hold have their labels in a column; give its name, not {type(label).__name__}")
        bounds, categories = self.bounds, self.categories or {}
        if bounds is not None and not isinstance(bounds, Mapping):
            raise ValueError("bounds: of rows that workers hold, give a dictionary of pairs by column")
        types = {str(name): "number" for name in bounds or {}} | {str(name): "text" for name in categories}
        if not types or label in types:
            raise ValueError(
                "of rows that workers hold, bounds and categories name the columns to learn from: give some, and not the label's"
            )
        self._names, self._types, self._is_numbered, self._label = list(types), types, False, label
        self.feature_names_in_ = np.asarray(self._names, dtype=object)
        self.n_features_in_ = len(types)
        # Which rows are complete depends on columns alone, and neither on classes nor on encodings.
        columns = Columns(self._names, types, label, ("no class", "no class"))
        unencoded = _columns.named(None, columns, bounds, categories, "linear")
        counted = CountedRows(X, Schema(toml_of({"data": unencoded.data, **self._terms()}), alone=True), any_labels=True)
        self._warn_of_delta(counted.rows)
        if len(counted.labels) != 2:
            raise ValueError(f"{X.path}: a classifier needs rows of two classes, and column {label!r} has {sorted(counted.labels)}")
        classes = sorted(counted.labels)
        self.classes_ = np.asarray(classes)
        columns = Columns(self._names, types, label, classes)
        total = Total(self.epsilon, self.delta, counted.rows, self._is_answered_once())
        encoding = _columns.encoding_of(self.encoding, columns, categories, total)
        return counted, _columns.named(None, columns, bounds, categories, encoding)

    def _warn_of_delta(self, rows: int) -> None:
        if self.delta * rows >= 1:
            warnings.warn(
                f"delta={self.delta!r} is not small: there are {rows} rows, and delta = 1/rows permits publishing a random row",
                StudyWarning,
                stacklevel=5,
            )

    @contextmanager
    def _whole_or_unchanged(self) -> Iterator[None]:
        """Leaves the estimator as it was if a fit fails: no model stands beside the classes or the guarantee of another."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _encode_classes(self, y: NDArray[Any]) -> NDArray[np.intp]:
        """Finds the two classes, and returns the number of each row's."""
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs rows of two classes, and got one class, {self.classes_[0]!r}, in n_samples={len(y)}"
            )
        return codes

    def _features(self, X: Rows, *, reset: bool) -> _radmm.Table:
        """Checks features and hands them over."""
        if is_arrow(X) and not is_sparse(X):
            return self._arrow_features(X, reset=reset)
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float64)
        if reset:
            self._is_numbered = is_sparse(X)
            # The columns of a sparse matrix have numbers, and there may be very many.
            self._names = [] if self._is_numbered else self._dense_names()
            self._types = dict.fromkeys(self._names, "number")
        if self._is_numbered:
            return sparse_table(_as_sparse(X), "X")
        return dense_table(X.toarray() if is_sparse(X) else X, self._dense_names(), "X")

    def _dense_names(self) -> list[str]:
        """Returns the names of the columns of an array."""
        names = getattr(self, "feature_names_in_", None)
        return [f"x{k}" for k in range(self.n_features_in_)] if names is None else list(names)

    def _arrow_features(self, X: Rows, *, reset: bool) -> _radmm.Table:
        """Checks the columns of a data frame and hands them over."""
        table = arrow_table(X, "X")
        names = [name for name, _ in table.column_types]
        if _is_known_to_sklearn(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
        elif reset:
            self.feature_names_in_ = np.asarray(names, dtype=object)
            self.n_features_in_ = len(names)
        elif list(getattr(self, "feature_names_in_", names)) != names:
            raise ValueError(
                f"The feature names should match those that were passed during fit: {list(self.feature_names_in_)}, and not {names}."
            )
        if table.rows == 0:
            raise ValueError(f"Found array with 0 sample(s) (shape=(0, {len(names)})) while a minimum of 1 is required.")
        if reset:
            self._names, self._types, self._is_numbered = names, dict(table.column_types), False
        return table

    def _is_answered_once(self) -> bool:
        """Returns whether the rows are asked one question only."""
        return False

    def _check_parameters(self) -> None:
        """Checks the parameters that both estimators have, before a row is looked at."""
        for name in ("epsilon", "delta"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)):
                raise ValueError(f"{name}={value!r}: a finite number is needed")
        if self.epsilon <= 0:
            raise ValueError(f"epsilon={self.epsilon!r}: it must be above 0")
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta={self.delta!r}: it must be at least 0 and below 1")
        if self.loss not in _LOSSES:
            raise ValueError(f"loss={self.loss!r}: it is one of {', '.join(_LOSSES)}")
        if self.n_jobs == 0:
            raise ValueError("n_jobs=0: give a number of threads, or None for all cores")

    def _terms(self) -> dict[str, Any]:
        """Returns the sections of a study on privacy and loss."""
        terms: dict[str, Any] = {"privacy": {"epsilon": float(self.epsilon)}}
        if self.delta:
            terms["privacy"]["delta"] = float(self.delta)
        if self.loss != "auto":
            terms["problem"] = {"loss": self.loss}
        return terms

    def _take(self, model: Model) -> None:
        """Takes over a model."""
        weights, columns = model.weights, model.columns
        self.model_ = model
        self.n_iter_ = model.iterations
        self.intercept_ = np.zeros(1)
        if model.has_intercept:
            self.intercept_, weights, columns = weights[-1:].copy(), weights[:-1], columns[:-1]
        self.coef_ = weights.reshape(1, -1).copy()
        self.columns_ = columns

    def decision_function(self, X: Rows) -> NDArray[np.float64]:
        """Returns a score for every row, positive for the second class of ``classes_``."""
        check_is_fitted(self)
        scores = self.model_.scores(self._features(X, reset=False))
        missing = np.flatnonzero(np.isnan(scores))
        if len(missing):
            raise DataError(
                f"X: row {missing[0] + 1} lacks a value, as do {len(missing) - 1} others, and the model knows no missing values"
                " there; fill them in, or train with a category for missing values"
            )
        return scores

    def predict(self, X: Rows) -> NDArray[Any]:
        """Returns the class of every row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(np.intp)]

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Rows) -> NDArray[np.float64]:
        """Returns the probability of each class for every row. The losses "logistic" and "cut-logistic" have them."""
        check_is_fitted(self)
        positive = self.model_.probabilities_of(self.decision_function(X))
        return np.column_stack([1 - positive, positive])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Rows) -> NDArray[np.float64]:
        """Returns the logarithms of the probabilities."""
        return np.log(cast("NDArray[np.float64]", self.predict_proba(X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


def as_array(values: Any) -> Any:
    """Returns a column of any library as an array."""
    return np.asarray(values) if hasattr(values, "__array__") else values


def unused_name(name: str, names: Sequence[str]) -> str:
    """Returns a name that no column has."""
    while name in names:
        name = f"_{name}"
    return name


def seed_of(random_state: int | np.random.RandomState | None) -> int:
    """Returns a seed: the one that is given, or one that is drawn."""
    if isinstance(random_state, int | np.integer):
        if not 0 <= random_state < 2**63:
            raise ValueError(f"random_state={random_state}: it must be at least 0 and below 2⁶³")
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def threads_of(n_jobs: int | None) -> int | None:
    """Returns a number of threads: as in joblib, negative numbers count from all cores."""
    if n_jobs is None or n_jobs > 0:
        return n_jobs
    return max(1, (os.cpu_count() or 1) + 1 + n_jobs)


def warn_of_dropped(dropped: int, rows: int) -> None:
    """Warns if rows were left out."""
    if dropped > 0:
        warnings.warn(
            f"{dropped} of {rows} rows lack a value and were left out; a column whose missing values are a category keeps them",
            DroppedRowsWarning,
            stacklevel=3,
        )


def learnt_before() -> list[str]:
    """Returns the steps of scikit-learn's pipelines that learnt from the rows before this fit got them."""
    pipelines = [frame.f_locals.get("self") for frame in _frames() if frame.f_globals.get("__name__") == "sklearn.pipeline"]
    found = {name: None for pipeline in pipelines if isinstance(pipeline, Pipeline) for name in _learning_steps(pipeline)}
    return list(found)


def _learning_steps(pipeline: Pipeline) -> list[str]:
    """Returns the names of a pipeline's steps, without the last one, that learn from rows."""
    steps = [(name, step) for name, step in pipeline.steps[:-1] if step is not None and step != "passthrough"]
    return [name for name, step in steps if not hasattr(step, "__sklearn_tags__") or get_tags(step).requires_fit]


def _as_sparse(X: Any) -> Any:
    if is_sparse(X):
        return X
    from scipy.sparse import csr_array

    return csr_array(X)


def _is_known_to_sklearn(X: Any) -> bool:
    """Returns whether scikit-learn sees names of columns."""
    return hasattr(X, "shape") and hasattr(X, "columns") and all(isinstance(name, str) for name in X.columns)


def _class_texts(classes: NDArray[Any]) -> list[str]:
    """Returns the texts of two classes: their own, unless these are not fit for a table, where they may mean that one is missing."""
    texts = [str(one).strip() for one in classes]
    return ["0", "1"] if texts[0] == texts[1] or not _MISSING.isdisjoint(texts) else texts


def _warn_of_search() -> None:
    """Warns if scikit-learn fits this estimator to choose or to score."""
    if any(frame.f_globals.get("__name__") in _SEARCHES for frame in _frames()):
        warnings.warn(
            "this fit is one of a search, a cross-validation or an ensemble: each fit costs its own epsilon, and neither the scores"
            " on the rows nor the choice among fits is covered by it",
            SearchWarning,
            stacklevel=4,
        )


def _frames() -> Iterator[FrameType]:
    """Returns the frames of the calls that led here."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
