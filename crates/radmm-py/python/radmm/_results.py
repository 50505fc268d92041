"""Results of studies: text for a terminal, dictionaries, data frames, and figures for a notebook."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from radmm import _radmm
from radmm._guarantee import Guarantee
from radmm._model import Model

#: The rows of a data frame.
_Records = list[dict[str, Any]]

#: The library that makes a data frame; ``"auto"`` takes pandas, or else polars.
Library = Literal["auto", "pandas", "polars"]


def data_frame(records: _Records, library: Library = "auto") -> Any:
    """Returns records as a data frame of pandas or polars."""
    if library in ("auto", "pandas"):
        try:
            import pandas
        except ImportError:
            if library == "pandas":
                raise
        else:
            return pandas.DataFrame(records)
    try:
        import polars
    except ImportError:
        wanted = "polars" if library == "polars" else "pandas pyarrow"
        raise ImportError(f"a data frame needs pandas or polars: pip install {wanted}") from None
    return polars.DataFrame(records, infer_schema_length=None)


@dataclass(frozen=True)
class Figure:
    """A figure of a report, which a notebook shows."""

    id: str
    title: str
    #: The figure, in light and dark.
    svg: str
    #: Its numbers.
    csv: str

    def save(self, path: str | Path) -> None:
        """Writes the figure, or its numbers if the path ends in ``.csv``."""
        path = Path(path)
        path.write_text(self.csv if path.suffix == ".csv" else self.svg, encoding="utf-8")

    def _repr_html_(self) -> str:
        # An image has a style of its own, which the page around it does not change.
        data = base64.b64encode(self.svg.encode()).decode()
        return f'<img alt="{html.escape(self.title)}" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'

    def __repr__(self) -> str:
        return f"<figure {self.id!r}: {self.title}>"


class _Result:
    """What results have in common."""

    _native: Any

    def text(self) -> str:
        """Returns the text that the command line prints."""
        return str(self._native.text())

    def to_dict(self) -> dict[str, Any]:
        """Returns everything, as the command line prints it with ``--json``."""
        return dict(self._content)

    @cached_property
    def _content(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self._native.json())
        return content

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        first = next((line for line in self.text().splitlines() if line), "")
        return f"<{type(self).__name__}: {first}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text())}</pre>"


class _ResultWithFigures(_Result):
    """What results with figures have in common."""

    @cached_property
    def figures(self) -> list[Figure]:
        """The figures of the report."""
        return [Figure(*drawn) for drawn in self._native.figures()]

    def report(self) -> str:
        """Returns the report: one page of HTML that needs nothing else."""
        return str(self._native.html())

    def _repr_html_(self) -> str:
        figures = "".join(figure._repr_html_() for figure in self.figures)
        return f"{super()._repr_html_()}{figures}"


class RunResult(_ResultWithFigures):
    """The result of a simulated study. It holds the encoded rows, for its report."""

    def __init__(self, native: _radmm.Simulated) -> None:
        self._native: _radmm.Simulated = native

    @property
    def guarantee(self) -> Guarantee:
        """The total of the run, the largest of the parties'. A simulation protects nobody."""
        privacy = self._content["privacy"]
        epsilon = privacy["epsilon"]
        return Guarantee(
            epsilon=float("inf") if epsilon is None else epsilon,
            delta=privacy["delta"],
            relation=privacy["relation"],
            scope=privacy["scope"],
            protects=privacy["protects"],
            reason=privacy["caveat"],
        )

    @property
    def model(self) -> Model | None:
        """The model of the first repetition, the mean of the parties' models; ``None`` if the run stopped early."""
        model = self._native.model
        return None if model is None else Model(model)

    @property
    def stopped(self) -> str | None:
        """The reason for which the run stopped early, if it did."""
        return self._native.stopped

    @property
    def accuracy(self) -> float:
        """The accuracy on held-out rows, or on all rows where none are held out: the mean over the repetitions."""
        repetitions = self._repetitions()
        score = "held_out" if "held_out" in repetitions[0] else "everywhere"
        accuracies = [run[score]["accuracy"] for run in repetitions]
        return float(sum(accuracies) / len(accuracies))

    def frame(
        self,
        of: Literal["iterations", "parties", "methods"] = "iterations",
        library: Library = "auto",
    ) -> Any:
        """Returns a data frame.

        ``"iterations"`` has a row for each iteration of each repetition, ``"parties"`` one for each party of each repetition, and
        ``"methods"`` one for the study and one for each method that it is compared with.
        """
        records = {"iterations": self._iterations, "parties": self._parties, "methods": self._methods}
        if of not in records:
            raise ValueError(f"of={of!r}: a frame is of {', '.join(map(repr, records))}")
        return data_frame(records[of](), library)

    def _repetitions(self) -> _Records:
        first = {key: self._content[key] for key in ("nodes", "iterations", "everywhere")}
        if "held_out" in self._content:
            first["held_out"] = self._content["held_out"]
        repetitions: _Records = self._content.get("repetitions") or [first]
        return repetitions

    def _iterations(self) -> _Records:
        return [
            {"repetition": number, **_flat(iteration)}
            for number, run in enumerate(self._repetitions())
            for iteration in run["iterations"]
        ]

    def _parties(self) -> _Records:
        hidden = ("model", "profile")
        return [
            {"repetition": number, **_flat({k: v for k, v in node.items() if k not in hidden})}
            for number, run in enumerate(self._repetitions())
            for node in run["nodes"]
        ]

    def _methods(self) -> _Records:
        content = self._content
        records = [{"method": content["study"]["algorithm"]["name"], **_scores(self._repetitions())}]
        for beside in content.get("beside", []):
            records.append({"method": beside["name"], **_scores(beside["ends"])})
        if content.get("centralised"):
            records.append({"method": "pooled, no noise", **_scores([content["centralised"]])})
        majority = content["majority"]
        records.append(
            {
                "method": "majority class",
                "held_out": majority.get("held_out"),
                "auc": None,
                "accuracy": majority.get("accuracy"),
            }
        )
        return records

    def save(self, folder: str | Path) -> list[Path]:
        """Writes the files of ``radmm run --out`` into a folder, and returns their paths."""
        return list(self._native.save(Path(folder)))

    def statement(self) -> dict[str, Any]:
        """Returns the privacy statement."""
        statement: dict[str, Any] = json.loads(self._native.statement())
        return statement

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<td style='text-align:left;vertical-align:top;padding-right:2em'><div>{html.escape(label)}</div>"
            f"<div style='font-size:1.6em'>{html.escape(value)}</div></td>"
            for label, value, _ in self._native.headlines()
        )
        figures = "".join(figure._repr_html_() for figure in self.figures)
        return f"<table><tr>{cells}</tr></table><p>{html.escape(str(self.guarantee))}</p>{figures}"


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """Returns a record whose nested records are columns of their own."""
    flat: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            flat.update({f"{key}_{inner}": number for inner, number in _flat(value).items()})
        else:
            flat[key] = value
    return flat


def _scores(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns the mean scores of runs."""

    def mean(score: str, quantity: str) -> float | None:
        values = [run[score][quantity] for run in runs if run.get(score)]
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known else None

    return {
        "held_out": mean("held_out", "accuracy"),
        "auc": mean("held_out", "auc"),
        "accuracy": mean("everywhere", "accuracy"),
    }


class Bill(_Result):
    """The privacy cost of a study, before anything runs."""

    def __init__(self, native: _radmm.Priced) -> None:
        self._native: _radmm.Priced = native

    @property
    def guarantee(self) -> Guarantee:
        """The total that the whole study will cost, the largest of the parties'."""
        content = self._content
        epsilon = content["epsilon"]
        return Guarantee(
            epsilon=float("inf") if epsilon is None else epsilon,
            delta=content["delta"],
            relation=content["relation"],
            scope=content["scope"],
            protects=False,
            reason="a bill: nothing has been asked yet",
        )

    def frame(self, library: Library = "auto") -> Any:
        """Returns a data frame with a row for each party."""
        records = [{k: v for k, v in node.items() if k != "steps"} for node in self._content["nodes"]]
        return data_frame(records, library)


class Plan(_ResultWithFigures):
    """The accuracy to expect at several totals, and the rows that it takes."""

    def __init__(self, native: _radmm.Forecasted) -> None:
        self._native: _radmm.Forecasted = native

    def frame(self, library: Library = "auto") -> Any:
        """Returns a data frame with a row for each total."""
        records = []
        for one in self._content["epsilons"]:
            needed = {f"rows_for_{round(100 * rows['share'])}_percent": rows["rows"] for rows in one["rows_needed"]}
            share = one["share"]["mean"] if isinstance(one["share"], dict) else one["share"]
            records.append({"epsilon": one["epsilon"], "accuracy": one["accuracy"], "share": share, **needed})
        return data_frame(records, library)


class Certificate(_Result):
    """Whether the algorithm of a study converges, and how fast."""

    def __init__(self, native: _radmm.Certified) -> None:
        self._native: _radmm.Certified = native


class ComparisonResult(_ResultWithFigures):
    """Studies compared at equal total privacy."""

    def __init__(self, native: _radmm.Compared) -> None:
        self._native: _radmm.Compared = native

    def frame(self, library: Library = "auto") -> Any:
        """Returns a data frame with a row for each candidate."""
        records = [
            {key: value for key, value in _flat(candidate).items() if not isinstance(value, list)}
            for candidate in self._content["contenders"]
        ]
        return data_frame(records, library)


class Verification(_Result):
    """The result of checking the files that parties show."""

    def __init__(self, native: _radmm.Verified) -> None:
        self._native: _radmm.Verified = native

    @property
    def holds(self) -> bool:
        """Whether everything that was checked holds."""
        return bool(self._content["holds"])

    @property
    def faults(self) -> list[Any]:
        """Everything that does not hold."""
        return list(self._content["faults"])

    def __bool__(self) -> bool:
        return self.holds
