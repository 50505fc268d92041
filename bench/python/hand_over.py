"""The cost of handing rows over to the Python package, beside that of computing on them.

    python hand_over.py [ROWS]

Needs the wheel, pandas, polars, pyarrow and duckdb. Two million rows of eight numbers and a text, unless ROWS says otherwise.
"""

import gc
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import radmm
from radmm._rows import arrow_table

ROWS = 2_000_000
NUMBERS = [f"x{k}" for k in range(8)]
GROUPS = ["a", "b", "c", "d"]


def rows(count: int) -> pa.Table:
    rng = np.random.default_rng(0)
    numbers = {name: rng.uniform(-1, 1, count) for name in NUMBERS}
    return pa.table(numbers | {"group": np.array(GROUPS)[rng.integers(0, len(GROUPS), count)]})


def seconds(work: Callable[[], Any], times: int) -> float:
    """Returns the least of several times."""
    least = float("inf")
    for _ in range(times):
        gc.collect()
        start = time.perf_counter()
        work()
        least = min(least, time.perf_counter() - start)
    return least


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    warnings.simplefilter("ignore", radmm.LedgerWarning)
    table = rows(count)
    y = table["x0"].to_numpy() + table["x1"].to_numpy() > 0
    duckdb.register("rows_of_duckdb", table)
    frames = {
        "pyarrow": table,
        "polars": pl.from_arrow(table),
        "pandas": table.to_pandas(),
        "pandas with Arrow's types": table.to_pandas(types_mapper=pd.ArrowDtype),
    }
    ways: dict[str, Callable[[], Any]] = {name: partial(arrow_table, frame, "X") for name, frame in frames.items()}
    ways["DuckDB, which computes them"] = lambda: arrow_table(duckdb.sql("select * from rows_of_duckdb"), "X")
    print(f"{count:,} rows of {len(NUMBERS)} numbers and a text")
    for name, way in ways.items():
        handed = seconds(way, times=5)
        print(f"{'handed over from ' + name:50} {1e3 * handed:10.1f} ms")
    known: dict[str, Any] = {"delta": 1e-8, "bounds": dict.fromkeys(NUMBERS, (-1, 1)), "categories": {"group": GROUPS}}
    simulated = radmm.RecycledADMMClassifier(random_state=1, **known)
    private = radmm.PrivateLinearClassifier(**known)
    for name, work in [
        ("RecycledADMMClassifier.fit, five parties", lambda: simulated.fit(table, y)),
        ("PrivateLinearClassifier.fit", lambda: private.fit(table, y)),
        ("PrivateLinearClassifier.predict", lambda: private.predict(table)),
    ]:
        print(f"{name:50} {1e3 * seconds(work, times=1):10.1f} ms")


if __name__ == "__main__":
    main()
