"""Rows that the workers of a party hold, whatever engine runs the workers.

Chunks are cut by the numbers of complete rows in the whole table, so that sums over them have the same bits wherever they are. A
worker that reads its part alone does not know these numbers: so the rows of all pieces are counted first, and read afterwards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from radmm import _radmm
from radmm.errors import DataError

#: A piece of files: the path, the format, and the number of the row group, or None for a whole file.
Piece = tuple[Path, str, int | None]

#: Counts of a piece: rows, complete rows, complete rows of the positive class, the first few labels, and how many rows lack which
#: columns.
Counts = tuple[int, int, int, list[str], list[tuple[str, int]]]

#: A function of this module, and its arguments.
Call = tuple[Callable[..., Any], tuple[Any, ...]]

#: The runs of pieces that are counted at a time, for each worker.
_RUNS_PER_WORKER = 4


@dataclass(frozen=True)
class Schema:
    """What columns mean: the text of a study. That of a party ``alone`` names neither itself nor parties."""

    study: str
    alone: bool


@dataclass(frozen=True)
class Part:
    """Everything that a worker needs to read its rows, and to read them again after a restart."""

    schema: Schema
    #: The pieces that hold the rows, each with the number of its complete rows.
    pieces: list[tuple[Piece, int]]
    #: The rows, by their numbers among the complete rows of these pieces.
    first_row: int
    end_row: int
    #: The number of the first chunk among those of the party.
    first_chunk: int
    threads: int

    def hold(self) -> _radmm.HeldChunks:
        """Reads and encodes the rows."""
        rows = (self.first_row, self.end_row, self.first_chunk)
        return _radmm.HeldChunks(self.schema.study, self.schema.alone, self.pieces, *rows, self.threads)


def count(schema: Schema, pieces: Sequence[Piece]) -> list[Counts]:
    """Counts the rows of pieces."""
    return _radmm.count_pieces(schema.study, schema.alone, list(pieces))


def hash_of(path: str) -> bytes:
    """Returns the hash by which an account knows the rows of files."""
    return _radmm.hash_rows(path)


class Workers(Protocol):
    """The workers of one party or fit, asked by their numbers."""

    def describe(self) -> list[bytes]:
        """Returns the descriptions of the workers' chunks, as soon as all have read theirs."""

    def submit(self, requests: Sequence[tuple[int, bytes]]) -> Any:
        """Sends requests, and returns what `collect` takes."""

    def collect(self, asked: Any, seconds: float) -> list[bytes] | None:
        """Returns the replies, or None if they are not all there after so many seconds."""

    def close(self) -> None:
        """Ends the workers."""


@dataclass(frozen=True)
class HeldRows:
    """Rows that workers hold, for one party or fit."""

    table: _radmm.WorkerTable
    workers: Workers


@contextmanager
def ended_on_error(workers: Workers) -> Iterator[None]:
    """Ends workers if an exception passes. Whoever keeps the exception would keep them otherwise, and what they take of a cluster."""
    try:
        yield
    except BaseException:
        workers.close()
        raise


class WorkerRows(ABC):
    """Files whose rows workers hold, and the engine that runs the workers."""

    def __init__(self, path: str | PathLike[str], *, workers: int, threads: int, format: str | None) -> None:
        if workers < 1 or threads < 1:
            raise ValueError(f"workers={workers}, threads={threads}: both must be at least 1")
        self.workers, self.threads, self._format = workers, threads, format
        resolved, self._pieces = _radmm.row_pieces(path, format)
        self.path = str(resolved)

    @abstractmethod
    def _run(self, calls: Sequence[Call]) -> list[Any]:
        """Calls functions on the engine, and returns what they return, in their order."""

    @abstractmethod
    def _start(self, parts: Sequence[Part]) -> Workers:
        """Starts a worker for each part."""

    def __repr__(self) -> str:
        return f"{type(self).__module__}.Rows({self.path!r}, workers={self.workers})"


class CountedRows:
    """Files whose rows were counted, by the columns that a study uses."""

    def __init__(self, rows: WorkerRows, schema: Schema, *, any_labels: bool) -> None:
        """Counts the rows. Unless any labels will do, it is an error if one of the study's two classes is missing."""
        self._rows = rows
        pieces = rows._pieces
        each = -(-len(pieces) // (_RUNS_PER_WORKER * rows.workers)) or 1
        runs = [pieces[k : k + each] for k in range(0, len(pieces), each)]
        found = rows._run([(hash_of, (rows.path,)), *((count, (schema, run)) for run in runs)])
        self._hash: bytes = found[0]
        self._counts: list[Counts] = [counts for run in found[1:] for counts in run]
        total = _radmm.total_counts(schema.study, schema.alone, self._counts, rows.path, any_labels)
        #: The numbers of all rows and of complete rows, and the first few labels of the latter.
        self.rows, self.complete, _, self.labels, _ = total

    def load(self, schema: Schema) -> HeldRows:
        """Has the workers read and encode the rows. The columns must be those by which the rows were counted."""
        rows = self._rows
        workers = rows._start(self._parts(schema))
        with ended_on_error(workers):
            descriptions = workers.describe()
            # The files were found and hashed before anything of them was encoded.
            hashed_again = rows._run([(hash_of, (rows.path,))])[0]
            if hashed_again != self._hash or _radmm.row_pieces(rows.path, rows._format)[1] != rows._pieces:
                raise DataError(f"{rows.path}: the rows changed while they were read; start again when nothing writes to them")
            return HeldRows(_radmm.WorkerTable(rows.path, descriptions, self._hash, workers), workers)

    def _parts(self, schema: Schema) -> list[Part]:
        """Gives every worker about the same number of chunks that follow on each other."""
        size = _radmm.HeldChunks.CHUNK_ROWS
        chunks = -(-self.complete // size)
        workers = min(self._rows.workers, chunks)
        # The number of the first complete row of each piece.
        firsts = [0, *accumulate(counts[1] for counts in self._counts)]
        parts = []
        for worker in range(workers):
            first_chunk, end_chunk = chunks * worker // workers, chunks * (worker + 1) // workers
            first, end = first_chunk * size, min(end_chunk * size, self.complete)
            inside = [k for k, counts in enumerate(self._counts) if firsts[k] < end and firsts[k] + counts[1] > first]
            pieces = [(self._rows._pieces[k], self._counts[k][1]) for k in inside]
            skipped = firsts[inside[0]]
            parts.append(Part(schema, pieces, first - skipped, end - skipped, first_chunk, self._rows.threads))
        return parts


def load(rows: WorkerRows, schema: Schema) -> HeldRows:
    """Counts the rows of a study's party, and has the workers read them."""
    return CountedRows(rows, schema, any_labels=False).load(schema)
