"""Accuracy of public tools on the tables of accuracy.py, in the columns of its studies.

    python peers.py FOLDER NAME ...

Needs diffprivlib and scikit-learn 1.3 (diffprivlib works with no newer one). Rows are those of FOLDER/NAME.train.csv and
NAME.test.csv, encoded as FOLDER/NAME.toml says. Prints JSON.
"""

import csv
import json
import math
import sys
import warnings
from bisect import bisect_right
from pathlib import Path

import numpy as np

try:
    import tomllib
except ImportError:  # before Python 3.11
    import tomli as tomllib

EPSILON = 1.0
SEEDS = 20
# Ridges of diffprivlib in units of the mean loss. The best of them on test rows is shown too: a choice that nobody pays for.
RIDGES = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)


def edges(bins):
    """The inner edges of a numeric column's bins, as in a study."""
    if isinstance(bins.get("bins"), list):
        return bins["bins"]
    low, high = bins["bounds"]
    count = bins["bins"]
    if bins.get("spacing") == "geometric":
        return [low * (high / low) ** (i / count) for i in range(count)]
    return [low + (high - low) * i / count for i in range(1, count)]


def splines(declared, number):
    """The columns that a number fills and their weights: uniform cubic B-splines."""
    low, high = declared["bounds"]
    first = 0
    if declared.get("spacing") == "geometric":
        if number < low:
            return [(0, 1.0)]
        share, first = math.log(min(number, high) / low) / math.log(high / low), 1
    else:
        share = (max(low, min(number, high)) - low) / (high - low)
    intervals = declared["splines"] - 3
    place = max(0.0, min(1.0, share)) * intervals
    interval = min(int(place), intervals - 1)
    t = place - interval
    s = 1.0 - t
    weights = [s**3, 4.0 + 3.0 * t * t * (t - 2.0), 4.0 + 3.0 * s * s * (s - 2.0), t**3]
    return [(first + interval + i, weight / 6.0) for i, weight in enumerate(weights)]


def is_number(text):
    try:
        float(text)
        return True
    except ValueError:
        return False


class Encoder:
    """From the fields of a row to its columns."""

    def __init__(self, header, study):
        data = study["data"]
        numeric, categorical = data.get("numeric", {}), data.get("categorical", {})
        self.columns, self.width, self.needed = [], 0, []
        for index, column in enumerate(header[:-1]):
            declared = categorical.get(column, numeric.get(column))
            if declared is None:
                continue
            table = isinstance(declared, dict)
            missing = table and declared.get("missing") == "category"
            if not missing:
                self.needed.append(index)
            if column in categorical:
                self.add_categories(index, list(declared["values"] if table else declared) + [""] * missing)
            else:
                self.add_numeric(index, declared, missing)

    def add_categories(self, index, names):
        places = {name: self.width + i for i, name in enumerate(names)}
        self.columns.append((index, "category", places))
        self.width += len(names)

    def add_numeric(self, index, declared, missing):
        if isinstance(declared, list):
            # The old form, which is not centred.
            self.columns.append((index, "number", (0.0, max(map(abs, declared)), declared, self.width)))
            self.width += 1
        elif "splines" in declared:
            width = declared["splines"] + (declared.get("spacing") == "geometric")
            self.columns.append((index, "splines", (declared, self.width, width)))
            self.width += width + missing
        elif "bins" in declared:
            inner = edges(declared)
            self.columns.append((index, "bins", (inner, self.width)))
            self.width += len(inner) + 1 + missing
        else:
            low, high = declared["bounds"]
            self.columns.append((index, "number", ((low + high) / 2, (high - low) / 2, [low, high], self.width)))
            self.width += 1

    def complete(self, rows):
        """The rows that a study keeps: nothing is missing where a missing value has no column."""
        return [row for row in rows if all(row[index] != "" for index in self.needed)]

    def __call__(self, rows):
        encoded = np.zeros((len(rows), self.width))
        for i, row in enumerate(rows):
            for index, kind, how in self.columns:
                text = row[index]
                if kind == "category":
                    place = how.get(text)
                    if place is not None:
                        encoded[i, place] = 1.0
                elif kind == "splines":
                    declared, start, width = how
                    for place, weight in [(width, 1.0)] if text == "" else splines(declared, float(text)):
                        encoded[i, start + place] = weight
                elif kind == "bins":
                    inner, start = how
                    place = len(inner) + 1 if text == "" else bisect_right(inner, float(text))
                    encoded[i, start + place] = 1.0
                elif text != "":
                    middle, half, (low, high), place = how
                    encoded[i, place] = (max(low, min(high, float(text))) - middle) / half
        norms = np.sqrt((encoded**2).sum(1, keepdims=True))
        return encoded / np.maximum(norms, 1e-12)


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return header, rows


def signs(rows, positive):
    return np.array([1.0 if row[-1] == positive else -1.0 for row in rows])


def load(folder, name):
    """Encoded rows and signs of the train and the test part, and the raw rows."""
    (header, train), (_, test) = (read(folder / f"{name}.{part}.csv") for part in ("train", "test"))
    study = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
    encoder = Encoder(header, study)
    train, test = encoder.complete(train), encoder.complete(test)
    labels = sorted({row[-1] for row in train})
    y, ty = signs(train, labels[-1]), signs(test, labels[-1])
    return {
        "header": header, "train": train, "test": test, "y": y, "ty": ty,
        "x": encoder(train), "tx": encoder(test), "columns": encoder.width,
    }


def raw_columns(data):
    """Standardised numbers, one column for each category, the mean in place of a missing number."""
    parts = []
    both = data["train"] + data["test"]
    count = len(data["train"])
    for index in range(len(data["header"]) - 1):
        values = [row[index] for row in both]
        known = {value for value in values if value != ""}
        if all(map(is_number, known)) and len(known) > 2:
            column = np.array([float(value) if value else np.nan for value in values])
            mean, deviation = np.nanmean(column[:count]), np.nanstd(column[:count])
            parts.append((np.where(np.isnan(column), mean, column)[:, None] - mean) / (deviation or 1.0))
        else:
            parts.append(np.array([[float(value == name) for name in sorted(known)] for value in values]))
    whole = np.hstack(parts)
    return whole[:count], whole[count:]


def compare(data):
    from diffprivlib.models import LogisticRegression as Private
    from sklearn.linear_model import LogisticRegression as Plain

    y, ty, x, tx = data["y"], data["ty"], data["x"], data["tx"]
    majority = np.sign(y.sum()) or 1.0
    fields = len(data["header"]) - 1
    # On rows of norm one this is scikit-learn's own ridge of 1 on rows of zeros and ones.
    encoded = Plain(C=fields, max_iter=2000, fit_intercept=False).fit(x, y)
    rx, rtx = raw_columns(data)
    raw = Plain(max_iter=2000).fit(rx, y)

    def private(inverse, seed):
        model = Private(epsilon=EPSILON, data_norm=1.0, C=inverse, max_iter=1000, fit_intercept=False, random_state=seed)
        return model.fit(x, y).score(tx, ty)

    # With scikit-learn 1.3 its ridge is 1/(C·n) for a sum of losses.
    inverses = [1.0 / (ridge * len(y) ** 2) for ridge in RIDGES] + [1.0]
    by_ridge = {c: np.mean([private(c, 1000 + seed) for seed in range(4)]) for c in inverses}
    best = max(by_ridge, key=by_ridge.get)
    default = [private(1.0, seed) for seed in range(SEEDS)]
    chosen = [private(best, seed) for seed in range(SEEDS)]
    error = lambda values: float(np.std(values, ddof=1) / len(values) ** 0.5)
    return {
        "rows": len(y), "test_rows": len(ty), "fields": fields, "columns": data["columns"],
        "majority": float((ty == majority).mean()),
        "sklearn_encoded": float(encoded.score(tx, ty)), "sklearn_raw": float(raw.score(rtx, ty)),
        "diffprivlib": float(np.mean(default)), "diffprivlib_error": error(default),
        "diffprivlib_best": float(np.mean(chosen)), "diffprivlib_best_error": error(chosen), "diffprivlib_best_C": best,
    }


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: python peers.py FOLDER NAME ...")
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1])
    results = {}
    for name in sys.argv[2:]:
        print(f"peers: {name}", file=sys.stderr)
        results[name] = compare(load(folder, name))
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
