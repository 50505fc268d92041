"""The side of radmm: `PrivateLinearClassifier` on data frames, with a new durable ledger for every fit."""

import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
from rows import LABEL, Rows, draft_public, read, write_public
from worker import quality, serve, timed_fit, versions

import radmm

_tables: dict[str, tuple[Rows, pd.DataFrame, pd.DataFrame]] = {}


def write_adult(folder: str) -> dict[str, Any]:
    """Writes the Adult table that comes with the package, for all sides."""
    adult = radmm.datasets.load_adult(library="pandas")
    for part, name in [(adult.train, "train"), (adult.test, "test")]:
        part.X.assign(**{LABEL: part.y}).to_csv(Path(folder) / f"adult.{name}.csv", index=False)
    write_public(Path(folder), "adult", adult.bounds, adult.categories)
    return {}


def write_bounds(folder: str, name: str) -> dict[str, Any]:
    """Writes bounds and vocabularies for a table that comes without any, for all sides."""
    draft_public(Path(folder), name)
    return {}


def load(folder: str, name: str) -> dict[str, Any]:
    """Reads a table."""
    rows = read(Path(folder), name)
    _tables[name] = rows, pd.DataFrame(rows.train.columns), pd.DataFrame(rows.test.columns)
    return {
        "majority": rows.majority,
        "rows": len(rows.train.labels),
        "test_rows": len(rows.test.labels),
        "fields": len(rows.train.columns),
    }


def fit(name: str, epsilon: float, delta: float) -> dict[str, Any]:
    """Fits once, with noise of the operating system, and charges a durable ledger."""
    rows, train, test = _tables[name]
    with tempfile.TemporaryDirectory() as ledger:
        model = radmm.PrivateLinearClassifier(epsilon, delta, bounds=rows.bounds, categories=rows.categories, ledger=ledger, n_jobs=1)
        seconds = timed_fit(model, train, rows.train.labels)
    guarantee = model.guarantee_
    if not guarantee.protects or guarantee.epsilon > epsilon or guarantee.delta > delta:
        raise AssertionError(f"not the promise that was asked for: {guarantee}")
    return {"seconds": seconds, "columns": len(model.columns_), **quality(model, test, rows.test.labels)}


serve(
    {
        "versions": lambda: versions("radmm", "scikit-learn", "numpy", "pandas", "pyarrow"),
        "write_adult": write_adult,
        "write_bounds": write_bounds,
        "load": load,
        "fit": fit,
    }
)
