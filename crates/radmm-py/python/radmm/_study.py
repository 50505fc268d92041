"""Studies: the rows, the network, the problem, the algorithm and the privacy that all parties agree on."""

from __future__ import annotations

import json
import tomllib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from radmm import _radmm
from radmm._progress import Progress, shown
from radmm._results import Bill, Certificate, ComparisonResult, Plan, RunResult, Verification
from radmm._rows import Rows, table_of
from radmm.errors import PublicBoundsWarning, StudyWarning

#: A prior method of the paper, to compare with.
PriorMethod = Literal["dvp", "pp", "pvp"]


class Study:
    """A study, from a dictionary of the form of a study file. docs/study.md describes every key.

    >>> import radmm
    >>> study = radmm.Study({"data": {"builtin": "clinic"}, "network": {"nodes": 5}, "privacy": {"epsilon": 1.0, "delta": 1e-5}})
    >>> study.parties
    5
    """

    def __init__(
        self,
        content: Mapping[str, Any],
        *,
        folder: str | PathLike[str] = ".",
        set: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        """Checks a dictionary; paths in it are relative to ``folder``.

        ``set`` has values for dotted keys, as in ``{"algorithm.penalty": 3}``, which take the place of the dictionary's, and
        ``seed`` is short for ``run.seed``: for many runs of one study.
        """
        self._parse(toml_of(content), "study.toml", Path(folder), _overrides(set, seed))

    def _parse(self, text: str, name: str, folder: Path, overrides: list[tuple[str, str, str]]) -> None:
        self._native = _radmm.StudyFile.parse(text, name, folder, overrides)
        self._text, self._file_name, self._folder, self._overrides = text, name, folder, overrides

    @classmethod
    def read(cls, path: str | PathLike[str], *, set: Mapping[str, Any] | None = None, seed: int | None = None) -> Study:
        """Reads a study file. Its notes are warnings of the category ``StudyWarning``.

        ``set`` and ``seed`` take the place of keys of the file, as those of the command ``radmm run`` do.
        """
        path = Path(path)
        return cls.parse(path.read_text(encoding="utf-8"), name=str(path), folder=path.parent, set=set, seed=seed)

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        name: str = "study.toml",
        folder: str | PathLike[str] = ".",
        set: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> Study:
        """Reads the text of a study file, whose name in messages is ``name``, with ``set`` and ``seed`` in place of its keys."""
        study = cls.__new__(cls)
        study._parse(text, name, Path(folder), _overrides(set, seed))
        for note in study.notes:
            warnings.warn(note, StudyWarning, stacklevel=2)
        return study

    @classmethod
    def auto(
        cls,
        rows: Rows,
        *,
        label: str | None = None,
        positive: str | None = None,
        parties: int = 5,
        by: str | None = None,
        epsilon: float = 1.0,
        delta: float | None = None,
        name: str = "rows",
    ) -> Study:
        """Drafts a study from a table, as ``radmm init`` does.

        ``by`` names a column that tells whose a row is; without it a number of ``parties`` share the rows. Bounds and vocabularies
        are read off the rows, and so are not public: the warning says so. The rows themselves are not kept: give them to
        ``run`` again.
        """
        table = table_of(rows, name)
        text, remarks = _radmm.draft_study(table, label, positive, parties, by, epsilon, delta)
        warnings.warn(remarks[0], PublicBoundsWarning, stacklevel=2)
        for remark in remarks[1:]:
            warnings.warn(remark, StudyWarning, stacklevel=2)
        study = cls.__new__(cls)
        study._parse(text, "study.toml", Path("."), [])
        return study

    @property
    def name(self) -> str:
        """The name of the study."""
        return self._native.name

    @property
    def sha256(self) -> str:
        """The SHA-256 digest of the study's content: parties with the same digest agree."""
        return self._native.sha256

    @property
    def parties(self) -> int:
        """The number of parties."""
        return self._native.parties

    @property
    def notes(self) -> list[str]:
        """The notes on keys that have no effect, or look like a mistake."""
        return self._native.notes

    def to_dict(self) -> dict[str, Any]:
        """Returns the study as a dictionary, as it was given; with its defaults filled in if keys of it were set."""
        return tomllib.loads(self._given())

    def to_toml(self) -> str:
        """Returns the study as a file, with its defaults filled in. It is the same study."""
        return self._native.to_toml()

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the study file as it was given, with its comments; with its defaults filled in if keys of it were set."""
        Path(path).write_text(self._given(), encoding="utf-8")

    def _given(self) -> str:
        return self.to_toml() if self._overrides else self._text

    def bill(self, *, rows: Rows | None = None, sizes: Iterable[int] | None = None, threads: int | None = None) -> Bill:
        """Returns what the study costs every party, before anything runs.

        ``sizes`` are the parties' numbers of rows. Without them, the parties' declared numbers count, or the rows of the study, or
        ``rows`` in their place.
        """
        return Bill(self._native.bill(_table(rows), _sizes(sizes), threads))

    def plan(
        self,
        epsilons: Iterable[float] = (),
        *,
        rows: Rows | None = None,
        sizes: Iterable[int] | None = None,
        like: Rows | None = None,
        threads: int | None = None,
        progress: Progress = "auto",
    ) -> Plan:
        """Returns the accuracy to expect at several totals. The rows of the study are counted at most.

        ``like`` are public rows of the same kind, which make a better forecast than the schema alone.
        """
        with shown(progress, "plan") as show:
            wanted = [float(epsilon) for epsilon in epsilons]
            forecast = self._native.plan(wanted, _sizes(sizes), _table(rows), _table(like, "public rows"), threads, show)
        return Plan(forecast)

    def certify(self, *, rows: Rows | None = None, threads: int | None = None, progress: Progress = "auto") -> Certificate:
        """Returns whether the study's algorithm converges, and how fast. It looks at the rows, without noise."""
        with shown(progress, "certify") as show:
            return Certificate(self._native.certify(_table(rows), threads, show))

    def run(
        self,
        *,
        rows: Rows | None = None,
        limit: float | None = None,
        baselines: bool = True,
        threads: int | None = None,
        progress: Progress = "auto",
    ) -> RunResult:
        """Simulates the study: all parties in this process, with noise from the study's seed. It protects nobody.

        ``rows`` take the place of the rows that the study names. ``limit`` is a limit on ε that every party keeps. ``baselines``
        are local training, averaging once, and no privacy at all, for comparison. Ctrl-C ends the run within half a second.
        """
        with shown(progress, self.name) as show:
            return RunResult(self._native.run(_table(rows), limit, baselines, threads, show))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (self._text, self._file_name, str(self._folder), self._overrides))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Study) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        return f"<radmm.Study {self.name!r}: {self.parties} parties, sha256 {self.sha256[:12]}…>"


def _restored(text: str, name: str, folder: str, overrides: list[tuple[str, str, str]]) -> Study:
    study = Study.__new__(Study)
    study._parse(text, name, Path(folder), overrides)
    return study


def _overrides(keys: Mapping[str, Any] | None, seed: int | None) -> list[tuple[str, str, str]]:
    """Returns keys in place of a study's: for each its name in messages, the key, and the value as JSON."""
    given = [(f'set["{key}"]', key, value) for key, value in (keys or {}).items()]
    given += [] if seed is None else [("seed", "run.seed", seed)]
    return [(name, key, json.dumps(value, default=_plain, allow_nan=False)) for name, key, value in given]


def compare(
    studies: Sequence[Study],
    *,
    rows: Rows | None = None,
    prior_methods: Iterable[PriorMethod] = (),
    epsilon: float | None = None,
    delta: float | None = None,
    repetitions: int | None = None,
    threads: int | None = None,
    progress: Progress = "auto",
) -> ComparisonResult:
    """Compares studies at equal total privacy, on the rows of the first, which ``rows`` may take the place of."""
    with shown(progress, "compare") as show:
        natives = [study._native for study in studies]
        methods = list(prior_methods)
        compared = _radmm.compare(natives, _table(rows), methods, epsilon, delta, repetitions, threads, show)
    return ComparisonResult(compared)


def verify(
    study: Study,
    transcripts: Iterable[str | PathLike[str]] = (),
    *,
    statements: Iterable[str | PathLike[str]] = (),
    models: Iterable[str | PathLike[str]] = (),
) -> Verification:
    """Checks the files that the parties of a study show, trusting none of them."""
    files = [[Path(path) for path in paths] for paths in (transcripts, statements, models)]
    return Verification(_radmm.verify(study._native, *files))


def toml_of(content: Mapping[str, Any]) -> str:
    """Returns a dictionary of the form of a study or site file as TOML."""
    return _radmm.toml_of_json(json.dumps(content, default=_plain, allow_nan=False))


def _plain(value: Any) -> Any:
    """Returns a number of NumPy, a path or a mapping as JSON knows it."""
    if isinstance(value, PathLike):
        return str(Path(value))
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a study holds numbers, text, lists and dictionaries, and no {type(value).__name__}")


def _table(rows: Rows | None, name: str = "rows") -> _radmm.Table | None:
    return None if rows is None else table_of(rows, name)


def _sizes(sizes: Iterable[int] | None) -> list[int] | None:
    return None if sizes is None else [int(size) for size in sizes]
