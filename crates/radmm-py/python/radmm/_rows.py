"""Rows from data frames, arrays and sparse matrices, handed over where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from radmm._radmm import Table
from radmm.errors import DataError

#: Anything whose rows can be read: a pandas, polars, pyarrow or duckdb table, an array, or a sparse matrix.
Rows = Any


def is_sparse(rows: Rows) -> bool:
    """Returns whether rows are a sparse matrix of SciPy."""
    return hasattr(rows, "tocsr")


def is_arrow(rows: Rows) -> bool:
    """Returns whether rows are a table that Arrow can read."""
    return hasattr(rows, "__arrow_c_stream__")


def row_count(rows: Rows) -> int:
    """Returns the number of rows of an array or matrix."""
    return int(rows.shape[0])


def table_of(rows: Rows, name: str = "rows") -> Table:
    """Hands rows over; ``name`` is theirs in messages. Arrays have the columns ``x0``, ``x1``, ….

    Nothing is copied but what Arrow cannot share, such as text of pandas objects.
    """
    if isinstance(rows, Table):
        return rows
    if is_sparse(rows):
        return sparse_table(rows, name)
    if is_arrow(rows):
        return arrow_table(rows, name)
    array = np.asarray(rows)
    if array.ndim != 2:
        raise DataError(
            f"{name}: rows are a table with named columns, a two-dimensional array or a sparse matrix; this is {type(rows).__name__}"
        )
    return dense_table(array, [f"x{k}" for k in range(array.shape[1])], name)


def arrow_table(rows: Rows, name: str) -> Table:
    """Hands over anything with ``__arrow_c_stream__``."""
    if hasattr(rows, "reset_index"):
        # The index of a pandas data frame is no column.
        rows = rows.reset_index(drop=True)
    try:
        return Table.from_arrow(rows, name)
    except ImportError:
        return _without_pyarrow(rows, name)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: a column cannot be read: {error}") from error


def _without_pyarrow(rows: Rows, name: str) -> Table:
    """Hands over a pandas data frame of numbers, which is all that is possible without pyarrow."""
    for column, kind in rows.dtypes.items():
        if kind.kind not in "iuf":
            raise DataError(
                f"{name}: pandas needs pyarrow to hand over columns that are not numbers, such as {column!r}: pip install pyarrow"
            )
    return dense_table(rows.to_numpy(dtype=np.float64), [str(column) for column in rows.columns], name)


def dense_table(rows: NDArray[Any], columns: Sequence[str], name: str) -> Table:
    """Hands over an array."""
    try:
        array = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: an array holds numbers only: {error}; give a data frame") from error
    return Table.from_dense(array, list(columns), name)


def sparse_table(rows: Any, name: str) -> Table:
    """Hands over a sparse matrix by its rows."""
    matrix = rows.tocsr()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.shape[1] >= 2**31:
        raise DataError(f"{name}: a sparse matrix has at most 2³¹ − 1 columns, and this one {matrix.shape[1]}")
    return Table.from_sparse(
        matrix.indptr.astype(np.int64, copy=False),
        matrix.indices.astype(np.int32, copy=False),
        matrix.data.astype(np.float64, copy=False),
        int(matrix.shape[1]),
        name,
    )


def with_codes(table: Table, column: str, codes: ArrayLike, texts: Sequence[str]) -> Table:
    """Returns the table with one more column, whose texts are given by their numbers."""
    return table.with_column(column, np.ascontiguousarray(codes, dtype=np.uint32), list(texts))
