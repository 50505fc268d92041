"""Tables that come with the package, for examples and tests. Nothing is fetched."""

from __future__ import annotations

import csv
import io
import tomllib
from dataclasses import dataclass
from typing import Any

from radmm._radmm import StudyFile, builtin_csv
from radmm._results import Library, data_frame


@dataclass(frozen=True)
class Split:
    """The rows of a table, or a part of them."""

    #: A data frame of the features.
    X: Any
    #: The label of every row.
    y: Any


@dataclass(frozen=True)
class Dataset:
    """A table with public bounds and vocabularies, and a conventional split."""

    #: A data frame of all columns, the label among them.
    frame: Any
    #: The name of the label's column.
    label: str
    #: The public bounds of the numeric columns, by name.
    bounds: dict[str, tuple[float, float]]
    #: The public vocabularies of the categorical columns, by name.
    categories: dict[str, list[str]]
    train: Split
    test: Split


#: The rows at the end of UCI's Adult table that are for testing.
_ADULT_TEST_ROWS = 16_281

#: The share of the clinic table that is for training.
_CLINIC_TRAINING_SHARE = 0.8


def load_adult(*, library: Library = "auto") -> Dataset:
    """Returns UCI's Adult table: 48,842 people of the US census of 1994, and who earns above 50,000 dollars.

    B. Becker and R. Kohavi, *Adult*, UCI Machine Learning Repository, 1996, doi:10.24432/C5XW20, under CC BY 4.0. A missing value is
    the category ``"?"``. The test rows are UCI's.
    """
    records = _records("adult")
    return _dataset("adult", records, len(records) - _ADULT_TEST_ROWS, library)


def load_clinic(*, library: Library = "auto") -> Dataset:
    """Returns 2,000 invented patients of five invented hospitals, and whether they were readmitted.

    Rows with a missing value are left out.
    """
    records = [row for row in _records("clinic") if "?" not in row.values()]
    return _dataset("clinic", records, int(_CLINIC_TRAINING_SHARE * len(records)), library)


def _number(text: str) -> float:
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _records(name: str) -> list[dict[str, Any]]:
    return list(csv.DictReader(io.StringIO(builtin_csv(name)), skipinitialspace=True))


def _dataset(name: str, records: list[dict[str, Any]], training: int, library: Library) -> Dataset:
    study = f'[data]\nbuiltin = "{name}"\n[network]\nnodes = 2\n[privacy]\nepsilon = 1\ndelta = 1e-6\n'
    data = tomllib.loads(StudyFile.parse(study, "study.toml", ".", []).to_toml())["data"]
    bounds = {column: (float(low), float(high)) for column, (low, high) in data["numeric"].items()}
    categories: dict[str, list[str]] = {column: list(values) for column, values in data["categorical"].items()}
    for row in records:
        for column in bounds:
            row[column] = _number(row[column])
    for column, values in categories.items():
        if any(row[column] == "?" for row in records):
            values.append("?")
    label = data["label"]
    frame = data_frame(records, library)

    def part(rows: Any) -> Split:
        features = [*bounds, *categories]
        return Split(X=rows[features], y=rows[label])

    return Dataset(frame, label, bounds, categories, part(frame[:training]), part(frame[training:]))
