"""The classifier that simulates a network: the bits of `radmm run`, and every way to say who takes part."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import radmm
from radmm.datasets import Dataset

BOUNDS = (-1.0, 1.0)


def test_adult_through_pandas_is_radmm_run_to_the_bit(adult: Dataset, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    model = radmm.RecycledADMMClassifier(epsilon=1.0, delta=1e-5, bounds=adult.bounds, categories=adult.categories, random_state=1)
    model.fit(adult.train.X, adult.train.y)
    # The same study on the same rows as files, with the test rows in a file of their own.
    content = model.study_.to_dict()
    label = content["data"]["label"]
    for name, part in (("train", adult.train), ("test", adult.test)):
        part.X.assign(**{label: part.y}).to_csv(tmp_path / f"{name}.csv", index=False)
    content["data"] |= {"path": "train.csv", "format": "csv", "test": {"path": "test.csv"}}
    radmm.Study(content, folder=tmp_path).save(tmp_path / "study.toml")
    ran = subprocess.run(
        [sys.executable, "-m", "radmm", "run", "study.toml", "--out", "results", "--json", "--quiet"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    result = json.loads(ran.stdout)
    weights = radmm.Model.read(tmp_path / "results" / "model.json").weights
    assert np.array_equal(weights, model.model_.weights)
    accuracy = model.score(adult.test.X, adult.test.y)
    assert result["held_out"]["accuracy"] == accuracy
    print(f"accuracy on {len(adult.test.y)} rows: {accuracy!r}, both")
    assert accuracy > 0.845


def test_it_protects_nobody_and_says_why(numbers: Any) -> None:
    X, y = numbers
    model = radmm.RecycledADMMClassifier(bounds=BOUNDS, random_state=1).fit(X, y)
    assert model.score(X, y) > 0.85
    assert not model.guarantee_.protects
    assert "simulation" in model.guarantee_.reason
    assert model.guarantee_.epsilon <= 1.0
    assert model.parties_ == {f"node {k}": 600 for k in range(5)}


def test_seeds_repeat_and_differ(numbers: Any) -> None:
    X, y = numbers
    fit = lambda seed: radmm.RecycledADMMClassifier(bounds=BOUNDS, random_state=seed).fit(X, y).coef_  # noqa: E731
    assert np.array_equal(fit(1), fit(1))
    assert not np.array_equal(fit(1), fit(2))
    assert not np.array_equal(fit(None), fit(None))


@pytest.mark.parametrize("threads", [1, 2, -1])
def test_the_number_of_threads_changes_no_bit(numbers: Any, threads: int) -> None:
    X, y = numbers
    one, other = (radmm.RecycledADMMClassifier(bounds=BOUNDS, random_state=1, n_jobs=n).fit(X, y).coef_ for n in (None, threads))
    assert np.array_equal(one, other)


def test_parties_are_labels_or_a_column(clinic: Dataset) -> None:
    hospitals = clinic.frame["hospital"].iloc[: len(clinic.train.y)]
    common: dict[str, Any] = {
        "bounds": clinic.bounds,
        "categories": clinic.categories,
        "random_state": 1,
    }
    labels = radmm.RecycledADMMClassifier(parties=list(hospitals), **common)
    labels.fit(clinic.train.X, clinic.train.y)
    assert list(labels.parties_) == sorted(set(hospitals))
    assert sum(labels.parties_.values()) == len(clinic.train.y)
    at_fit = radmm.RecycledADMMClassifier(**common)
    at_fit.fit(clinic.train.X, clinic.train.y, parties=hospitals)
    assert np.array_equal(at_fit.coef_, labels.coef_)
    with_column = clinic.train.X.assign(hospital=hospitals)
    column = radmm.RecycledADMMClassifier(parties="hospital", **common)
    column.fit(with_column, clinic.train.y)
    assert np.array_equal(column.coef_, labels.coef_)
    assert not any("hospital" in name for name in column.columns_)
    assert np.array_equal(column.predict(with_column), labels.predict(clinic.train.X))


@pytest.mark.parametrize(
    "graph",
    ["complete", "auto", {"topology": "grid", "width": 2}, [(0, 1), (1, 2), (2, 3), (3, 0)]],
)
def test_graphs_are_names_sections_or_edges(numbers: Any, graph: Any) -> None:
    X, y = numbers
    model = radmm.RecycledADMMClassifier(n_parties=4, graph=graph, bounds=BOUNDS, random_state=1)
    assert model.fit(X, y).score(X, y) > 0.85


@pytest.mark.parametrize(
    "algorithm",
    ["consensus", "r-admm", {"name": "dgd", "step": 0.2, "iterations": 30}],
)
def test_algorithms_are_names_or_sections(numbers: Any, algorithm: Any) -> None:
    X, y = numbers
    model = radmm.RecycledADMMClassifier(5.0, n_parties=3, algorithm=algorithm, bounds=BOUNDS, random_state=1, loss="logistic")
    assert model.fit(X, y).score(X, y) > 0.75
    assert model.predict_proba(X).shape == (len(y), 2)


def test_searches_split_the_parties_with_the_rows(numbers: Any) -> None:
    X, y = numbers
    parties = np.resize(["a", "b", "c"], len(y))
    search = GridSearchCV(radmm.RecycledADMMClassifier(bounds=BOUNDS, random_state=1), {"epsilon": [0.5, 4.0]}, cv=3)
    with pytest.warns(radmm.SearchWarning):
        search.fit(X, y, parties=parties)
    assert list(search.best_estimator_.parties_) == ["a", "b", "c"]


def test_it_survives_pickling_and_cloning(numbers: Any) -> None:
    X, y = numbers
    model = radmm.RecycledADMMClassifier(bounds=BOUNDS, random_state=1).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert again.study_ == model.study_
    assert np.array_equal(clone(model).fit(X, y).coef_, model.coef_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_parties": 1}, "at least two parties"),
        ({"n_parties": 5000}, "less than n_parties"),
        ({"graph": "rng"}, "rng"),
        ({"graph": [(0, 1)]}, "separate components"),
        ({"algorithm": "admmm"}, "admmm"),
        ({"parties": "who"}, "no column of this name"),
        ({"parties": [1, 2]}, "inconsistent numbers of samples"),
        ({"parties": ["a"] * 3000}, "at least two parties"),
    ],
)
def test_wrong_parameters_are_named(numbers: Any, parameters: dict[str, Any], message: str) -> None:
    X, y = numbers
    with pytest.raises(ValueError, match=message):
        radmm.RecycledADMMClassifier(bounds=BOUNDS, random_state=1, **parameters).fit(X, y)
