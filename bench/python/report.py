"""The results of the comparison as a section of a page."""

import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

BEGIN = "<!-- written by make compare-python: from here -->"
END = "<!-- written by make compare-python: to here -->"

#: What was measured at one ε.
Setting = dict[str, Any]

CONTENDERS = {
    "radmm": "radmm, δ = 10⁻⁵",
    "radmm_pure": "radmm, δ = 0",
    "diffprivlib_best": "diffprivlib in hindsight",
    "diffprivlib": "diffprivlib, nothing chosen",
    "diffprivlib_old_best": "diffprivlib 0.6.5 in hindsight",
}

#: A difference below so many of its standard errors is none.
_LEVEL = 2.0


def summary(fits: Sequence[dict[str, float]]) -> dict[str, float]:
    """Returns means with their standard errors, and the median time."""
    found = {"seconds": statistics.median(fit["seconds"] for fit in fits)}
    for quality in ("accuracy", "auc"):
        values = [fit[quality] for fit in fits]
        found[quality] = statistics.mean(values)
        found[f"{quality}_error"] = statistics.stdev(values) / len(values) ** 0.5
    return found


def markdown(results: dict[str, Any]) -> str:
    """Returns the results as Markdown."""
    tables = results["tables"]
    parts = [
        _measured(results),
        "Accuracy on the test rows, in per cent:",
        _quality(tables, "accuracy", lambda facts: facts["majority"]),
        "\n".join(_verdicts(tables)),
        "Area under the ROC curve, in per cent:",
        _quality(tables, "auc", lambda _: 0.5),
        "Time of a fit, the median:",
        _times(tables),
        "What was best for diffprivlib on the test rows:",
        _choices(tables),
    ]
    return "\n\n".join(parts)


def replace_section(page: Path, text: str) -> None:
    """Replaces what is between the marks of a page."""
    whole = page.read_text(encoding="utf-8")
    if whole.count(BEGIN) != 1 or whole.count(END) != 1:
        sys.exit(f"{page}: each of the two marks is needed once: {BEGIN} and {END}")
    before, rest = whole.split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def _measured(results: dict[str, Any]) -> str:
    """Returns what was measured on what, by which programs."""
    sides = [", ".join(f"{name} {version}" for name, version in side.items()) for side in results["versions"]]
    text = f"{results['machine']}. {'; '.join(sides)}. Measured on {results['date']}, {results['repetitions']} fits of each kind. "
    if results["load"] > 0.5:
        text += f"The machine was busy with other work beforehand (load {results['load']:.1f}): times are less certain."
    return text.strip()


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, *lines]
    first, *others = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([first, "|---" * len(head) + "|", *others])


def _settings(tables: dict[str, Any]) -> list[tuple[str, dict[str, Any], Setting]]:
    return [(name, facts, setting) for name, facts in tables.items() for setting in facts["settings"]]


def _quality(tables: dict[str, Any], quality: str, floor: Callable[[dict[str, Any]], float]) -> str:
    """Returns a table of one quality."""
    first = {"accuracy": "majority class", "auc": "a constant"}[quality]
    head = ["table", "rows", "columns", "ε", first, *CONTENDERS.values(), "scikit-learn, no privacy"]
    lines = []
    for name, facts, setting in _settings(tables):
        cells = [f"{_percent(setting[one][quality])} ± {_percent(setting[one][f'{quality}_error'])}" for one in CONTENDERS]
        facts_of_table = [name, f"{facts['rows']:,}", f"{facts['fields']} → {facts['columns']}"]
        ends = _percent(floor(facts)), _percent(facts["without_privacy"][quality])
        lines.append([*facts_of_table, f"{setting['epsilon']:g}", ends[0], *cells, ends[1]])
    return _table(head, lines)


def _times(tables: dict[str, Any]) -> str:
    """Returns the table of times."""
    head = ["table", "ε", *CONTENDERS.values(), "radmm, δ = 10⁻⁵, to diffprivlib in hindsight", "radmm, δ = 0, to the same"]
    lines = []
    for name, _, setting in _settings(tables):
        seconds = {one: setting[one]["seconds"] for one in CONTENDERS}
        ratios = [f"{seconds[one] / seconds['diffprivlib_best']:.1f} ×" for one in ("radmm", "radmm_pure")]
        lines.append([name, f"{setting['epsilon']:g}", *(f"{1e3 * one:.0f} ms" for one in seconds.values()), *ratios])
    return _table(head, lines)


def _choices(tables: dict[str, Any]) -> str:
    """Returns the table of what was chosen for diffprivlib."""
    peers = ("diffprivlib_best", "diffprivlib_old_best")
    lines = [
        [name, f"{setting['epsilon']:g}", *(_choice(setting["chosen"][peer]) for peer in peers)]
        for name, _, setting in _settings(tables)
    ]
    return _table(["table", "ε", *(CONTENDERS[peer] for peer in peers)], lines)


def _choice(chosen: dict[str, Any]) -> str:
    ridge = "C = 1" if chosen["ridge"] is None else f"ridge {chosen['ridge']:g}"
    return f"{chosen['layout']}; {ridge}"


def _verdicts(tables: dict[str, Any]) -> list[str]:
    """Returns who is ahead, as a list."""
    settings = _settings(tables)
    pairs = [
        ("radmm_pure", "diffprivlib_best", "At the same promise, δ = 0, diffprivlib in hindsight"),
        ("radmm_pure", "diffprivlib", "At the same promise, δ = 0, diffprivlib with nothing chosen"),
        ("radmm_pure", "diffprivlib_old_best", "At the same promise, δ = 0, diffprivlib 0.6.5 in hindsight"),
        ("radmm", "diffprivlib_best", "Against radmm at δ = 10⁻⁵, a weaker promise, diffprivlib in hindsight"),
        ("radmm", "diffprivlib", "Against radmm at δ = 10⁻⁵, a weaker promise, diffprivlib with nothing chosen"),
    ]
    return [_verdict(settings, *pair) for pair in pairs]


def _verdict(settings: Sequence[tuple[str, dict[str, Any], Setting]], ours: str, theirs: str, words: str) -> str:
    """Returns where the other side is ahead, behind and level in accuracy."""
    places: dict[str, dict[str, list[str]]] = {"ahead": {}, "behind": {}, "level": {}}
    gaps = []
    for name, _, setting in settings:
        our, their = setting[ours], setting[theirs]
        gap = their["accuracy"] - our["accuracy"]
        error = (our["accuracy_error"] ** 2 + their["accuracy_error"] ** 2) ** 0.5
        place = "level" if abs(gap) <= _LEVEL * error else "ahead" if gap > 0 else "behind"
        places[place].setdefault(name, []).append(f"{setting['epsilon']:g}")
        gaps.append(100 * gap)
    found = [f"{place} {_where(where)}" for place, where in places.items() if where]
    return f"- {words} is {', '.join(found)}. The differences are {min(gaps):+.1f} to {max(gaps):+.1f} points."


def _where(settings: dict[str, list[str]]) -> str:
    count = sum(map(len, settings.values()))
    tables = "; ".join(f"{name} at ε = {', '.join(epsilons)}" for name, epsilons in settings.items())
    return f"in {count} of the settings ({tables})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
