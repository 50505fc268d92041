"""The meaning of columns: public bounds and vocabularies, as they are given, or as they are read off the rows."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from radmm import _radmm
from radmm.errors import PublicBoundsWarning

#: How numbers become columns: by splines or bins, each with a weight of its own, or as they are.
Encoding = Literal["auto", "splines", "bins", "linear"]

#: Public bounds: a pair for all columns, a pair of arrays with one number a column, or pairs by column.
Bounds = tuple[ArrayLike, ArrayLike] | Mapping[str, Any]

#: Public vocabularies by column.
Categories = Mapping[str, Sequence[str]]

#: The splines or bins of a column, where there are not many columns; and the most columns for which all have so many.
_MOST_BINS = 8
_LEAST_BINS = 4
_MOST_COLUMNS = 400

#: The rows below which a numeric column has one weight: there are too few for more. The number of rows is public.
_FEW_ROWS = 500

#: The splines and categories, over rows times ε, beyond which noise in one answer hides what splines tell.
_MOST_COLUMNS_PER_ROW = 0.05

#: The distances between bounds must be within this number and one over it: beyond, arithmetic overflows.
_EXTREME = 1e300

#: The names in a message; more are counted.
_NAMED = 5


@dataclass(frozen=True)
class Columns:
    """The columns of a table, without its label."""

    names: Sequence[str]
    #: What cells are to a study, by name: ``number``, ``boolean``, ``text`` or ``other``.
    types: Mapping[str, str]
    #: The name of the label's column, and its two values, the negative one first.
    label: str
    classes: Sequence[str]


@dataclass(frozen=True)
class Total:
    """What a rule may know of a fit."""

    epsilon: float
    delta: float
    #: The number of rows, which is public.
    rows: int
    #: Whether the rows are asked one question only.
    is_answered_once: bool


@dataclass(frozen=True)
class Meaning:
    """``[data]`` of a study."""

    data: dict[str, Any]
    #: Whether something in it was read off the rows.
    read_off: bool


def encoding_of(encoding: Encoding, columns: Columns, categories: Categories | None, total: Total) -> str:
    """Returns how numbers become columns: as asked for, or by a public rule."""
    known = ("auto", "splines", "bins", "linear")
    if encoding not in known:
        raise ValueError(f"encoding={encoding!r}: it is one of {', '.join(known)}")
    if encoding != "auto":
        return encoding
    if total.rows < _FEW_ROWS:
        return "linear"
    if total.is_answered_once:
        given = categories or {}
        numbers = sum(kind == "number" and name not in given for name, kind in columns.types.items())
        width = _MOST_BINS * numbers + sum(len(values) for values in given.values())
        return "linear" if width > _MOST_COLUMNS_PER_ROW * total.rows * total.epsilon else "splines"
    # A pure total pays for every non-zero of a row, of which bins have one and splines four.
    return "splines" if total.delta > 0 else "bins"


def numbered(width: int, positive: str, bounds: Bounds | None, categories: Categories | None) -> Meaning:
    """Returns the meaning of the columns of a sparse matrix."""
    if bounds is not None or categories is not None:
        raise ValueError(
            "bounds and categories are for named columns: the values of a sparse matrix are taken as they are, and every row is"
            " scaled to norm one"
        )
    # Labels are values of Python, of which none means that it is missing.
    data = {"path": "X", "format": "libsvm", "columns": width, "positive": positive, "missing": [], "intercept": True}
    return Meaning(data, read_off=False)


def named(
    table: _radmm.Table | None,
    columns: Columns,
    bounds: Bounds | None,
    categories: Categories | None,
    encoding: str,
) -> Meaning:
    """Returns the meaning of named columns. What is not given is read off the table, if there is one, with a warning."""
    numeric, categorical = _given(columns, bounds, categories, encoding)
    left = [name for name in columns.names if name not in numeric and name not in categorical]
    missing: list[str] = []
    if left and table is not None:
        drafted = _read_off(table, columns, left, encoding)
        missing = drafted["missing"]
        numeric |= {name: form for name, form in drafted["numeric"].items() if name in left}
        categorical |= {name: form for name, form in drafted["categorical"].items() if name in left}
    if not numeric and not categorical:
        raise ValueError(
            "no feature is left to learn from: all columns are constant, or look like identifiers or free text; give bounds and"
            " categories"
        )
    data = {
        "path": "X",
        "label": columns.label,
        "positive": columns.classes[1],
        "missing": missing,
        "intercept": True,
        "numeric": {name: numeric[name] for name in columns.names if name in numeric},
        "categorical": {name: categorical[name] for name in columns.names if name in categorical},
    }
    return Meaning(data, read_off=bool(left))


def _given(
    columns: Columns, bounds: Bounds | None, categories: Categories | None, encoding: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the columns whose bounds or vocabularies are given, in the form of a study file."""
    categorical: dict[str, Any] = {}
    for key, values in (categories or {}).items():
        name = _name_of(key, "categories", columns)
        categorical[name] = _vocabulary(name, values)
    pairs = {} if bounds is None else _pairs(bounds, columns, categorical)
    taken = sum(len(values) for values in categorical.values())
    bins = (_MOST_COLUMNS - taken) // max(1, len(pairs))
    bins = max(_LEAST_BINS, min(_MOST_BINS, bins))
    numeric = {name: _numeric_form(name, pair, encoding, bins) for name, pair in pairs.items()}
    for name in numeric:
        if name in categorical:
            raise ValueError(f"column {name!r} has both bounds and categories; give one of them")
    return numeric, categorical


def _pairs(bounds: Bounds, columns: Columns, categorical: Mapping[str, Any]) -> dict[str, Any]:
    """Returns bounds by column."""
    if isinstance(bounds, Mapping):
        pairs = {_name_of(key, "bounds", columns): pair for key, pair in bounds.items()}
        for name, pair in pairs.items():
            if not isinstance(pair, Mapping) and np.shape(pair) != (2,):
                raise ValueError(f"bounds of column {name!r}: a pair of numbers is needed, not {pair!r}")
        return pairs
    if not isinstance(bounds, Sequence | np.ndarray) or len(bounds) != 2:
        raise ValueError(
            "bounds is a pair (least, greatest) of numbers or of arrays with one number a column, or a dictionary of pairs by"
            f" column, not {bounds!r}"
        )
    width = len(columns.names)
    sides = [np.asarray(side, dtype=np.float64) for side in bounds]
    if any(side.shape not in ((), (1,), (width,)) for side in sides):
        shapes = " and ".join(str(side.shape) for side in sides)
        raise ValueError(f"bounds: there are {width} columns, and the arrays have the shapes {shapes}")
    low, high = (np.broadcast_to(side, (width,)) for side in sides)
    return {
        name: (low[k], high[k]) for k, name in enumerate(columns.names) if columns.types[name] == "number" and name not in categorical
    }


def _numeric_form(name: str, pair: Any, encoding: str, bins: int) -> dict[str, Any]:
    """Returns a numeric column in the form of a study file."""
    if isinstance(pair, Mapping):
        return dict(pair)
    low, high = (float(bound) for bound in pair)
    if not 1 / _EXTREME < high - low < _EXTREME:
        raise ValueError(
            f"bounds of column {name!r}: the least value must be below the greatest, and both finite, not ({low}, {high})"
        )
    form: dict[str, Any] = {"bounds": [low, high]}
    if encoding != "linear":
        form[encoding] = bins
    return form


def _name_of(key: Any, parameter: str, columns: Columns) -> str:
    """Returns the name of a column, which a data frame may have as a number."""
    name = str(key)
    if name not in columns.names:
        raise ValueError(f"{parameter}: there is no column {key!r}; the columns are {list(columns.names)}")
    return name


def _vocabulary(name: str, values: Any) -> Any:
    """Returns a vocabulary in the form of a study file."""
    if isinstance(values, Mapping):
        return {**values, "values": _vocabulary(name, values.get("values", ()))}
    if isinstance(values, str | bytes | Set) or not isinstance(values, Iterable):
        # The order is part of the study, and that of a set changes from one process to the next.
        raise ValueError(f"categories of column {name!r}: a list of values is needed, not {values!r}")
    return [_text(value) for value in values]


def _text(value: Any) -> str:
    """Returns what a cell with this value is to a study."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def _read_off(table: _radmm.Table, columns: Columns, left: Sequence[str], encoding: str) -> dict[str, Any]:
    """Drafts ``[data]`` from the rows, and warns that it is not public."""
    numeric = encoding.replace("linear", "centred")
    draft = _radmm.draft_columns(table, columns.label, columns.classes[1], numeric)
    data: dict[str, Any] = tomllib.loads(draft)["data"]
    unused = [name for name in left if name not in data["numeric"] and name not in data["categorical"]]
    text = (
        f"bounds and vocabularies of {_some(left)} were read off the rows, and so are not public: no guarantee covers them. Give"
        " bounds and categories that are known without these rows"
    )
    if unused:
        text += f". Not learnt from (constant, or like an identifier): {_some(unused)}"
    warnings.warn(text, PublicBoundsWarning, stacklevel=6)
    return data


def _some(names: Sequence[str]) -> str:
    """Returns some names, with the number of the others."""
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} other columns"
