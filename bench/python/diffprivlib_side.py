"""The side of a diffprivlib: its private logistic regression, and scikit-learn's without privacy."""

import warnings
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from diffprivlib.models import LogisticRegression as PrivateRegression
from rows import Part, Rows, read
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import SplineTransformer
from worker import quality, serve, timed_fit, versions

warnings.simplefilter("ignore")

#: Ridges in units of the mean loss. The best of them on the test rows counts: a choice that nobody pays for.
RIDGES = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)

#: The fits by which a layout and a ridge are chosen.
_TRIALS = 6

#: L-BFGS mostly needs fewer; diffprivlib's default of 100 is too few for some layouts.
_MOST_ITERATIONS = 1000

#: Whether C is what scikit-learn documents.
_IS_RIDGE_OF_SUM = metadata.version("diffprivlib") != "0.6.5"

_tables: dict[str, tuple[Rows, dict[str, tuple[Any, Any]]]] = {}


def _scaled(numbers: Any, low: float, high: float) -> Any:
    """Returns numbers as one column between 0 and 1."""
    return ((np.clip(numbers, low, high) - low) / (high - low))[:, None]


def _bins(numbers: Any, low: float, high: float, count: int) -> Any:
    """Returns numbers as indicators of bins of equal width."""
    places = np.searchsorted(np.linspace(low, high, count + 1)[1:-1], numbers, side="right")
    return np.eye(count)[places]


def _splines(numbers: Any, low: float, high: float, count: int) -> Any:
    """Returns numbers as uniform cubic B-splines."""
    knots = np.linspace(low, high, count - 2)[:, None]
    # The rows have no part in it: the knots are given.
    return SplineTransformer(knots=knots, extrapolation="constant").fit_transform(np.clip(numbers, low, high)[:, None])


def _columns(rows: Rows, part: Part, form: str) -> Any:
    """Returns a part as dense columns, the last of them constant."""
    blocks = []
    for name, values in part.columns.items():
        if name in rows.categories:
            blocks.append(values[:, None] == np.array(rows.categories[name], dtype=object))
        elif form == "scaled":
            blocks.append(_scaled(values, *rows.bounds[name]))
        else:
            blocks.append({"bins": _bins, "splines": _splines}[form](values, *rows.bounds[name], rows.weights))
    return np.hstack([*blocks, np.ones((len(part.labels), 1))]).astype(float)


def _of_norm_one(columns: Any) -> Any:
    return columns / np.linalg.norm(columns, axis=1, keepdims=True)


def _layouts(rows: Rows) -> dict[str, tuple[Any, Any]]:
    """Returns the training and the test rows in every layout. No row of any has a norm above one."""
    plain, splines, bins = (
        [_columns(rows, part, form) for part in (rows.train, rows.test)] for form in ("scaled", "splines", "bins")
    )
    # A number, a category and the constant are at most one each.
    greatest = np.sqrt(len(rows.bounds) + len(rows.categories) + 1)
    return {
        "scaled": tuple(part / greatest for part in plain),
        "scaled, rows of norm one": tuple(map(_of_norm_one, plain)),
        "splines, rows of norm one": tuple(map(_of_norm_one, splines)),
        "bins, rows of norm one": tuple(map(_of_norm_one, bins)),
    }


def load(folder: str, name: str) -> dict[str, Any]:
    """Reads a table, and lays out its rows."""
    rows = read(Path(folder), name)
    _tables[name] = rows, _layouts(rows)
    return {"columns": _tables[name][1]["splines, rows of norm one"][0].shape[1] - 1}


def _inverse(ridge: float | None, rows: int) -> float:
    """Returns the parameter C for a ridge; None is the default of diffprivlib.

    For a sum of n losses the ridge is 1/C since diffprivlib 0.6.6. Before, with scikit-learn 1.3, it was 1/(C n).
    """
    if ridge is None:
        return 1.0
    return 1.0 / (ridge * rows) if _IS_RIDGE_OF_SUM else 1.0 / (ridge * rows**2)


def _model(epsilon: float, ridge: float | None, rows: int, seed: int | None) -> PrivateRegression:
    """Returns a model for rows of at most norm one. The constant column is its intercept, and is protected like the others."""
    return PrivateRegression(
        epsilon=epsilon,
        data_norm=1.0,
        C=_inverse(ridge, rows),
        fit_intercept=False,
        max_iter=_MOST_ITERATIONS,
        random_state=seed,
        n_jobs=1,
    )


def _trial(name: str, epsilon: float, layout: str, ridge: float | None) -> float:
    """Returns the mean accuracy of a few fits."""
    rows, layouts = _tables[name]
    train, test = layouts[layout]
    labels = rows.train.labels
    models = [_model(epsilon, ridge, len(labels), seed).fit(train, labels) for seed in range(_TRIALS)]
    return float(np.mean([quality(model, test, rows.test.labels)["accuracy"] for model in models]))


def choose(name: str, epsilon: float) -> dict[str, Any]:
    """Returns the layout and the ridge that are best on the test rows."""
    tried = [(layout, ridge) for layout in _tables[name][1] for ridge in (None, *RIDGES)]
    accuracies = [_trial(name, epsilon, layout, ridge) for layout, ridge in tried]
    layout, ridge = tried[int(np.argmax(accuracies))]
    inverse = _inverse(ridge, len(_tables[name][0].train.labels))
    return {"layout": layout, "ridge": ridge, "C": inverse, "tried": len(tried)}


def fit(name: str, epsilon: float, layout: str, ridge: float | None) -> dict[str, Any]:
    """Fits once, with noise of the operating system, on rows that are laid out beforehand."""
    rows, layouts = _tables[name]
    train, test = layouts[layout]
    model = _model(epsilon, ridge, len(rows.train.labels), None)
    seconds = timed_fit(model, train, rows.train.labels)
    return {"seconds": seconds, **quality(model, test, rows.test.labels)}


def without_privacy(name: str) -> dict[str, Any]:
    """Fits scikit-learn's logistic regression on splines, with its default ridge."""
    rows, _ = _tables[name]
    train, test = (_columns(rows, part, "splines") for part in (rows.train, rows.test))
    model = LogisticRegression(max_iter=_MOST_ITERATIONS, fit_intercept=False)
    seconds = timed_fit(model, train, rows.train.labels)
    return {"seconds": seconds, **quality(model, test, rows.test.labels)}


serve(
    {
        "versions": lambda: versions("diffprivlib", "scikit-learn", "numpy"),
        "load": load,
        "choose": choose,
        "fit": fit,
        "without_privacy": without_privacy,
    }
)
