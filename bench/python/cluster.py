"""Passes over rows that the workers of a Ray cluster hold, beside those of one process: time, overhead and traffic.

    python cluster.py [ROWS] [FOLDER] [FITS]

Needs the wheel, ray and pyarrow. Writes two million rows of eight numbers and a text, unless ROWS says otherwise, into FOLDER, and
fits a private classifier on them. The seeds are fixed, so that all fits make the same passes and have the same bits.
"""

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray

import radmm
import radmm.ray
from radmm._workers import Part, WorkerRows

ROWS = 2_000_000
NUMBERS = [f"x{k}" for k in range(8)]
GROUPS = ["a", "b", "c", "d"]

#: The fits of each kind. The first one starts processes of Ray, which the others find.
FITS = 4

#: The rows below which a pass is all overhead: one chunk, and one for each of four workers.
FEW = 500
ONE_CHUNK_EACH = 3 * 16_384 + 1


def write(folder: Path, rows: int) -> Path:
    """Writes rows into files of at most half a million, in row groups of 100,000."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number, first in enumerate(range(0, rows, 500_000)):
        count = min(500_000, rows - first)
        numbers = {name: rng.uniform(-1, 1, count) for name in NUMBERS}
        group = np.array(GROUPS)[rng.integers(0, len(GROUPS), count)]
        label = np.where(numbers["x0"] + numbers["x1"] + rng.normal(0, 0.3, count) > 0, "yes", "no")
        table = pa.table(numbers | {"group": group, "label": label})
        pq.write_table(table, folder / f"part-{number:03}.parquet", row_group_size=100_000)
    return folder


class Passes:
    """The passes of a fit: their times, and the bytes that went to workers and came back."""

    all: ClassVar[list["Passes"]] = []

    def __init__(self, workers: Any, cpu_seconds: Callable[[], list[float]]) -> None:
        self.all.append(self)
        self.workers = workers
        self.described = 0.0
        self.cpu_seconds = cpu_seconds
        self.cpu_before: list[float] = []
        self.busiest = 0.0
        self.seconds: list[float] = []
        self.sent: list[int] = []
        self.received: list[int] = []
        self.start = 0.0

    def describe(self) -> list[bytes]:
        described: list[bytes] = self.workers.describe()
        self.described = time.perf_counter()
        self.cpu_before = self.cpu_seconds()
        return described

    def close(self) -> None:
        """Ends the workers. Other programs do not lengthen the processor time of the busiest one, as they do all others."""
        spent = zip(self.cpu_before, self.cpu_seconds(), strict=True)
        self.busiest = max(after - before for before, after in spent)
        self.workers.close()

    def submit(self, requests: Sequence[tuple[int, bytes]]) -> Any:
        self.start = time.perf_counter()
        self.sent.append(sum(len(request) for _, request in requests))
        return self.workers.submit(requests)

    def collect(self, asked: Any, seconds: float) -> Any:
        replies = self.workers.collect(asked, seconds)
        if replies is not None:
            self.seconds.append(time.perf_counter() - self.start)
            self.received.append(sum(len(reply) for reply in replies))
        return replies


class Here(WorkerRows):
    """One worker in this process, which is asked without an engine."""

    def _run(self, calls: Any) -> list[Any]:
        return [function(*args) for function, args in calls]

    def _start(self, parts: Sequence[Part]) -> Any:
        held = [part.hold() for part in parts]
        workers = type("Workers", (), {})()
        workers.describe = lambda: [one.describe() for one in held]
        workers.submit = lambda requests: [held[worker].reply(request) for worker, request in requests]
        workers.collect = lambda replies, _: replies
        workers.close = held.clear
        return Passes(workers, lambda: [time.process_time()])


class OnRay(radmm.ray.Rows):
    """Workers of Ray whose passes are counted."""

    def _start(self, parts: Sequence[Part]) -> Any:
        workers = super()._start(parts)
        return Passes(workers, lambda: ray.get([one.__ray_call__.remote(processor_time) for one in workers._actors]))


def processor_time(_: Any) -> float:
    return time.process_time()


def fit(rows: WorkerRows) -> tuple[Passes, float, bytes]:
    """Fits, and returns the passes, the seconds of reading, and the bits of the model."""
    known: dict[str, Any] = {"bounds": dict.fromkeys(NUMBERS, (-1, 1)), "categories": {"group": GROUPS}}
    model = radmm.PrivateLinearClassifier(delta=1e-8, random_state=1, **known)
    start = time.perf_counter()
    model.fit(rows, "label")
    passes = Passes.all.pop()
    return passes, passes.described - start, model.coef_.tobytes()


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(tempfile.mkdtemp())
    times_each = int(sys.argv[3]) if len(sys.argv) > 3 else FITS
    warnings.simplefilter("ignore", radmm.LedgerWarning)
    ray.init(address="local", num_cpus=4, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    many = write(folder / "many", count)
    few = write(folder / "few", FEW)
    chunks = write(folder / "chunks", ONE_CHUNK_EACH)
    ways: list[tuple[str, Path, Any]] = [
        (f"{FEW} rows, one process", few, lambda path: Here(path, workers=1, threads=1, format=None)),
        (f"{FEW} rows, 1 worker", few, lambda path: OnRay(path, workers=1)),
        (f"{ONE_CHUNK_EACH:,} rows, one process", chunks, lambda path: Here(path, workers=1, threads=1, format=None)),
        (f"{ONE_CHUNK_EACH:,} rows, 4 workers", chunks, lambda path: OnRay(path, workers=4)),
        (f"{count:,} rows, one process, 1 thread", many, lambda path: Here(path, workers=1, threads=1, format=None)),
        (f"{count:,} rows, one process, 2 threads", many, lambda path: Here(path, workers=1, threads=2, format=None)),
        (f"{count:,} rows, 1 worker", many, lambda path: OnRay(path, workers=1)),
        (f"{count:,} rows, 2 workers", many, lambda path: OnRay(path, workers=2)),
        (f"{count:,} rows, 4 workers", many, lambda path: OnRay(path, workers=4)),
    ]
    heads = ["rows and workers", "reading", "passes", "a pass, median", "all passes", "processor time of the busiest"]
    print("|", " | ".join([*heads, "sent a pass", "received a pass"]), "|")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    bits: dict[Path, bytes] = {}
    for name, path, way in ways:
        fits = [fit(way(path)) for _ in range(times_each)]
        for _, _, model in fits:
            assert bits.setdefault(path, model) == model, "other bits"
        found = fits[0][0]
        # The least of several fits: other programs can only lengthen them.
        reading = min(reading for _, reading, _ in fits)
        busiest = min(found.busiest for found, _, _ in fits)
        times = np.min([found.seconds for found, _, _ in fits], axis=0)
        milliseconds = 1e3 * float(np.median(times))
        columns = [name, f"{reading:.2f} s", f"{len(times)}", f"{milliseconds:.1f} ms", f"{times.sum():.2f} s", f"{busiest:.2f} s"]
        columns += [f"{np.mean(found.sent) / 1e3:.1f} kB", f"{np.mean(found.received) / 1e3:.1f} kB"]
        print("|", " | ".join(columns), "|", flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main()
