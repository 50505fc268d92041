"""Rows come from any library, as they are: the same rows give the same bits."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import radmm
from radmm._radmm import Table
from radmm.datasets import Dataset

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
sparse = pytest.importorskip("scipy.sparse")


def fitted(X: Any, y: Any, **parameters: Any) -> Any:
    return radmm.RecycledADMMClassifier(random_state=1, **parameters).fit(X, y)


def test_every_library_gives_the_same_bits(clinic: Dataset) -> None:
    frame: Any = clinic.train.X
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    known: dict[str, Any] = {"bounds": clinic.bounds, "categories": clinic.categories}
    expected = fitted(frame, clinic.train.y, **known)
    ways = {
        "polars": polars.from_pandas(frame),
        "pyarrow": table,
        "duckdb": duckdb.sql("select * from frame"),
        "shuffled index": frame.set_index(np.arange(len(frame))[::-1]),
        "in chunks": pyarrow.concat_tables([table.slice(0, 7), table.slice(7)]),
    }
    for name, rows in ways.items():
        y = clinic.train.y
        if name == "shuffled index":
            y = y.to_numpy()
        model = fitted(rows, y, **known)
        assert np.array_equal(model.coef_, expected.coef_), name
        again = duckdb.sql("select * from frame") if name == "duckdb" else rows
        assert np.array_equal(model.predict(again), expected.predict(frame)), name


TEXTS = ["a", "b", "c", None]


@pytest.mark.parametrize(
    "kind",
    [
        pyarrow.string(),
        pyarrow.large_string(),
        pyarrow.string_view(),
        pyarrow.dictionary(pyarrow.int8(), pyarrow.string()),
        pyarrow.dictionary(pyarrow.uint32(), pyarrow.large_string()),
    ],
    ids=str,
)
def test_texts_of_every_type_are_read_and_nulls_are_missing(kind: Any) -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 4, 2000)
    y = codes == 1
    texts = pyarrow.array([TEXTS[code] for code in codes], pyarrow.string()).cast(
        pyarrow.string() if "dictionary" in str(kind) else kind
    )
    if "dictionary" in str(kind):
        texts = texts.cast(kind.value_type).dictionary_encode().cast(kind)
    rows = pyarrow.table({"text": texts})
    known = {"text": {"values": ["a", "b", "c"], "missing": "category"}}
    model = fitted(rows, y, categories=known)
    assert model.columns_ == ["text=a", "text=b", "text=c", "text=missing"]
    assert model.score(rows, y) == 1.0
    # Without a category for missing values their rows are left out, and cannot be predicted.
    with pytest.warns(radmm.DroppedRowsWarning, match="left out"), pytest.warns(radmm.StudyWarning, match='"text" in'):
        model = fitted(rows, y, categories={"text": ["a", "b", "c"]})
    with pytest.raises(radmm.DataError, match="row .* lacks a value"):
        model.predict(rows)


@pytest.mark.parametrize("kind", ["int8", "int64", "uint16", "float16", "float32", "float64"])
def test_numbers_of_every_type_are_read(kind: str) -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(0, 10, 2000)
    rows = pyarrow.table({"number": pyarrow.array(values.astype(kind))})
    expected = fitted(values.reshape(-1, 1), values > 4, bounds=(0, 10))
    model = fitted(rows, values > 4, bounds={"number": (0, 10)})
    assert np.array_equal(model.coef_, expected.coef_)


@pytest.mark.parametrize(
    ("cells", "vocabulary"),
    [
        ([False, True], ["true", "false"]),
        ([False, True], [False, True]),
        ([0.0, 1.0], [0.0, 1.0]),
        ([0.0, 1.5], np.array([0.0, 1.5])),
        ([0, 1], np.array([0, 1])),
        ([" a b ", "c"], [" a b ", "c"]),
    ],
    ids=str,
)
def test_vocabularies_are_values_of_python(cells: list[Any], vocabulary: Any) -> None:
    codes = np.resize([0, 1, 1], 1000)
    rows = pyarrow.table({"kind": pyarrow.array([cells[code] for code in codes])})
    model = fitted(rows, codes == 1, categories={"kind": vocabulary})
    assert model.score(rows, codes == 1) == 1.0


def test_columns_of_a_frame_may_have_numbers_as_names() -> None:
    frame = pandas.DataFrame(np.random.default_rng(1).uniform(-1, 1, (1000, 2)))
    y = frame[0] > 0
    assert fitted(frame, y, bounds={0: (-1, 1), 1: (-1, 1)}).score(frame, y) > 0.9


def test_labels_that_are_missing_are_an_error() -> None:
    X = np.random.default_rng(1).uniform(-1, 1, (100, 2))
    y = np.array(["a", "b", None, "a"] * 25, dtype=object)
    with pytest.raises(ValueError, match="y contains NaN"):
        fitted(X, y, bounds=(-1, 1))


def test_sparse_rows_are_those_of_a_dense_array_of_the_same_study() -> None:
    rng = np.random.default_rng(3)
    dense = rng.integers(0, 2, (2000, 6)).astype(float)
    y = dense[:, 0] > dense[:, 1]
    for kind in (sparse.csr_matrix, sparse.csr_array, sparse.coo_array, sparse.csc_array):
        model = fitted(kind(dense), y)
        assert model.columns_ == ["1", "2", "3", "4", "5", "6"]
        assert model.score(kind(dense), y) > 0.8
        assert np.array_equal(model.predict(dense), model.predict(kind(dense)))
    unsorted = sparse.csr_array((np.ones(3), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 6))
    assert not unsorted.has_canonical_format
    summed = sparse.csr_array(unsorted.toarray())
    assert model.decision_function(unsorted) == model.decision_function(summed)
    assert not unsorted.has_canonical_format, "the caller's matrix was changed"


def test_arrow_rows_are_not_copied() -> None:
    values = pyarrow.array(np.zeros(1_000_000))
    before = pyarrow.total_allocated_bytes()
    table = Table.from_arrow(pyarrow.table({"x": values}), "rows")
    # The schema takes a few bytes; a copy would take eight million.
    assert pyarrow.total_allocated_bytes() - before < 10_000
    assert table.rows == 1_000_000


def test_arrays_are_not_copied() -> None:
    array = np.zeros((1000, 3))
    references = sys.getrefcount(array)
    table = Table.from_dense(array, ["a", "b", "c"], "rows")
    assert sys.getrefcount(array) == references + 1
    del table
    gc.collect()
    assert sys.getrefcount(array) == references


def test_columns_that_cannot_be_read_are_named_if_they_are_used() -> None:
    import datetime

    days = [datetime.date(2020, 1, 1 + k % 28) for k in range(1000)]
    rows = pyarrow.table({"day": days, "x": np.linspace(0, 1, 1000)})
    y = np.linspace(0, 1, 1000) > 0.5
    with pytest.raises(radmm.DataError, match="day"):
        fitted(rows, y, bounds={"day": (0, 1), "x": (0, 1)})
    # Left out, it is no problem.
    with pytest.warns(radmm.PublicBoundsWarning, match="Not learnt from.*day"):
        assert fitted(rows, y, bounds={"x": (0, 1)}).score(rows, y) > 0.9


def test_numbers_of_pandas_need_no_pyarrow(clinic: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    frame: Any = clinic.train.X
    numbers = frame[list(clinic.bounds)]
    expected = fitted(numbers, clinic.train.y, bounds=clinic.bounds)
    # Pandas then cannot import it.
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    model = fitted(numbers, clinic.train.y, bounds=clinic.bounds)
    assert np.array_equal(model.coef_, expected.coef_)
    assert list(model.feature_names_in_) == list(clinic.bounds)
    assert np.array_equal(model.predict(numbers), expected.predict(numbers))
    with pytest.raises(radmm.DataError, match="'smoker'.*pip install pyarrow"):
        fitted(frame, clinic.train.y, bounds=clinic.bounds, categories=clinic.categories)


def test_a_value_beyond_the_vocabulary_is_named(clinic: Dataset) -> None:
    known = {**clinic.categories, "sex": ["f", "x"]}
    with pytest.raises(radmm.DataError, match=r"row \d+.*\"m\"|\"m\".*row \d+"):
        fitted(clinic.train.X, clinic.train.y, bounds=clinic.bounds, categories=known)


def test_a_frame_with_other_columns_is_refused(clinic: Dataset) -> None:
    frame: Any = clinic.train.X
    model = fitted(frame, clinic.train.y, bounds=clinic.bounds, categories=clinic.categories)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"age": "years"}))
    table = pyarrow.Table.from_pandas(frame.rename(columns={"age": "years"}), preserve_index=False)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table)


def test_no_rows_are_an_error(clinic: Dataset) -> None:
    frame: Any = clinic.train.X
    with pytest.raises(ValueError, match="0 sample"):
        fitted(frame.iloc[:0], clinic.train.y.iloc[:0])


def test_a_table_that_is_no_table_is_an_error(study: radmm.Study, tmp_path: Path) -> None:
    for rows in ("rows.csv", [1, 2], tmp_path, 3):
        with pytest.raises((radmm.DataError, ValueError)):
            study.run(rows=rows, progress=False)


def test_a_panic_does_not_cross(capfd: pytest.CaptureFixture[str]) -> None:
    """Rust panics where a matrix is changed after it was handed over and checked. Python sees an exception like any other."""
    dense = np.resize([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]], (1000, 3))
    model = fitted(sparse.csr_array(dense), dense[:, 0] > 0)
    starts = np.array([0, 1, 2])
    table = Table.from_sparse(starts, np.array([0, 1], dtype=np.int32), np.ones(2), 3, "X")
    assert len(model.model_._native.scores(table)) == 2
    starts[2] = 100
    with pytest.raises(RuntimeError, match="a mistake of its own"):
        model.model_._native.scores(table)
    assert "panicked" in capfd.readouterr().err
    # Nothing is left locked.
    starts[2] = 2
    assert len(model.model_._native.scores(table)) == 2


def test_text_that_is_no_text_is_refused() -> None:
    """Files of other programs hold such columns, and pyarrow reads them."""
    ages = np.arange(100.0)
    one_byte_each = pyarrow.py_buffer(np.arange(101, dtype=np.int32).tobytes())
    not_utf8 = pyarrow.Array.from_buffers(pyarrow.string(), 100, [None, one_byte_each, pyarrow.py_buffer(b"\xff" * 100)])
    codes = pyarrow.array([0, 5] * 50, pyarrow.int8())
    no_such_text = pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(["u", "v"]), safe=False)
    for column in (not_utf8, no_such_text, pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 100), not_utf8)):
        table = pyarrow.table({"age": ages, "ward": column})
        with pytest.raises(radmm.DataError, match="ward.* is damaged"):
            fitted(table, ages > 40, bounds={"age": (0, 100)}, categories={"ward": ["u", "v"]})
