"""Rows to train and to test on, with what is public of their columns, as all sides of the comparison read them."""

import csv
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

#: The label's column.
LABEL = "label"

#: Weights of a numeric column, where there are not many columns, and the most columns for which all have so many. These are the
#: numbers of `radmm.PrivateLinearClassifier`; the driver checks that both sides have equally many columns.
_MOST_WEIGHTS, _LEAST_WEIGHTS, _MOST_COLUMNS = 8, 4, 400


@dataclass(frozen=True)
class Part:
    """Rows to train or to test on."""

    #: Numbers or texts by column, in the order of the file.
    columns: dict[str, Any]
    #: The label of every row.
    labels: Any


@dataclass(frozen=True)
class Rows:
    """A table with its public bounds and vocabularies."""

    bounds: dict[str, list[float]]
    categories: dict[str, list[str]]
    train: Part
    test: Part

    @property
    def weights(self) -> int:
        """The number of splines or bins of a numeric column."""
        taken = sum(map(len, self.categories.values()))
        share = (_MOST_COLUMNS - taken) // max(1, len(self.bounds))
        return max(_LEAST_WEIGHTS, min(_MOST_WEIGHTS, share))

    @property
    def majority(self) -> float:
        """The share of test rows whose label is the most frequent one of the training rows."""
        names, counts = np.unique(self.train.labels, return_counts=True)
        return float(np.mean(self.test.labels == names[counts.argmax()]))


def read(folder: Path, name: str) -> Rows:
    """Reads a table."""
    public = json.loads((folder / f"{name}.public.json").read_text(encoding="utf-8"))
    bounds, categories = public["bounds"], public["categories"]
    return Rows(bounds, categories, *(_part(folder / f"{name}.{part}.csv", bounds, categories) for part in ("train", "test")))


def draft_public(folder: Path, name: str) -> None:
    """Writes bounds and vocabularies for a table that comes without any, from its training rows.

    Bounds are the 1st and the 99th percentile, rounded outwards to two digits of their distance; vocabularies are complete.
    """
    texts = _read_texts(folder / f"{name}.train.csv")
    del texts[LABEL]
    bounds = {column: _bounds(numbers) for column, values in texts.items() if (numbers := _numbers(values)) is not None}
    categories = {column: sorted(set(values)) for column, values in texts.items() if column not in bounds}
    write_public(folder, name, bounds, categories)


def _numbers(values: list[str]) -> Any:
    """Returns texts as numbers, or `None` if they are none."""
    try:
        return np.array(values, dtype=float)
    except ValueError:
        return None


def _bounds(numbers: Any) -> tuple[float, float]:
    low, high = np.percentile(numbers, [1, 99])
    if low == high:
        low, high = numbers.min(), numbers.max()
    digits = 1 - math.floor(math.log10(high - low))
    unit = 10.0**-digits
    return round(math.floor(low / unit) * unit, max(0, digits)), round(math.ceil(high / unit) * unit, max(0, digits))


def write_public(folder: Path, name: str, bounds: dict[str, Any], categories: dict[str, Any]) -> None:
    """Writes what is public of a table's columns."""
    text = json.dumps({"bounds": bounds, "categories": categories}, indent=1)
    (folder / f"{name}.public.json").write_text(text, encoding="utf-8")


def _read_texts(path: Path) -> dict[str, list[str]]:
    """Reads the columns of a file."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return {column: list(values) for column, values in zip(header, zip(*rows, strict=True), strict=True)}


def _part(path: Path, bounds: dict[str, Any], categories: dict[str, Any]) -> Part:
    texts = _read_texts(path)
    columns: dict[str, Any] = {column: np.array(texts[column], dtype=float) for column in bounds}
    columns |= {column: np.array(texts[column], dtype=object) for column in categories}
    return Part({column: columns[column] for column in texts if column in columns}, np.array(texts[LABEL], dtype=object))
