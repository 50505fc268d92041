"""radmm's Python package beside diffprivlib: accuracy and time on four tables, measured in turns in one run.

    python compare.py PYTHON OLD_PYTHON FOLDER [--page PAGE] [--json FILE]

PYTHON has the packages of requirements.txt and the wheel, OLD_PYTHON those of ../peers/requirements-private.txt: the diffprivlib that
needs scikit-learn 1.3. FOLDER gets the tables. The results are printed, and replace what is between two marks in PAGE.
`make compare-python` does all of it.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from report import Setting, markdown, replace_section, summary

HERE = Path(__file__).resolve().parent
TABLE_SCRIPTS = HERE.parents[1] / "scripts" / "tables"

EPSILONS = (0.5, 1.0, 2.0)
DELTA = 1e-5
REPETITIONS = 20

#: The table that comes with radmm, split as UCI split it, and three of docs/accuracy.md that differ in size and kind.
ADULT = "adult"
FETCHED = ("magic", "mushroom", "spambase")

#: diffprivlib with nothing chosen: its default C, and the layout of the same columns that most people would take.
NOTHING_CHOSEN = {"layout": "scaled, rows of norm one", "ridge": None}

#: One thread for everybody. radmm has `n_jobs=1` besides.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1")


class Side:
    """A process that fits models of one environment, and stays for the whole run."""

    def __init__(self, python: str, script: str) -> None:
        self._name = script
        command = [python, "-B", "-W", "ignore", str(HERE / script)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8", env=os.environ | ONE_THREAD
        )

    def ask(self, do: str, **parameters: Any) -> dict[str, Any]:
        """Returns the answer to a request."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **parameters}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            sys.exit(f"{self._name} ended before {do!r}: see its message above")
        answer = self._process.stdout.readline()
        if not answer:
            sys.exit(f"{self._name} ended at {do!r}: see its message above")
        return json.loads(answer)

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()


class Sides(NamedTuple):
    """The processes of a comparison."""

    radmm: Side
    diffprivlib: Side
    diffprivlib_old: Side


def prepare(folder: Path, radmm: Side) -> None:
    """Writes all tables with their splits and what is public of their columns."""
    folder.mkdir(parents=True, exist_ok=True)
    if not all((folder / f"{name}.csv").exists() for name in FETCHED):
        subprocess.run([sys.executable, TABLE_SCRIPTS / "fetch.py", folder], check=True, stdout=sys.stderr)
    sys.path.append(str(TABLE_SCRIPTS))
    from accuracy import split

    radmm.ask("write_adult", folder=str(folder))
    for name in FETCHED:
        split(folder, name)
        radmm.ask("write_bounds", folder=str(folder), name=name)


def measure_table(name: str, folder: Path, sides: Sides, repetitions: int) -> dict[str, Any]:
    """Returns the facts of a table, and what was measured at each ε."""
    loaded = [side.ask("load", folder=str(folder), name=name) for side in sides]
    facts = loaded[0] | loaded[1]
    # The first fits load libraries, and do not count.
    first = sides.radmm.ask("fit", name=name, epsilon=1.0, delta=DELTA)
    if any(first["columns"] != peer["columns"] for peer in loaded[1:]):
        sys.exit(f"{name}: radmm has {first['columns']} columns, and the other sides {[peer['columns'] for peer in loaded[1:]]}")
    for peer in sides[1:]:
        peer.ask("fit", name=name, epsilon=1.0, **NOTHING_CHOSEN)
    facts["without_privacy"] = sides.diffprivlib.ask("without_privacy", name=name)
    facts["settings"] = [measure_setting(name, epsilon, sides, repetitions) for epsilon in EPSILONS]
    return facts


def measure_setting(name: str, epsilon: float, sides: Sides, repetitions: int) -> Setting:
    """Fits all models at one ε, in turns."""
    contenders = {
        "radmm": (sides.radmm, {"delta": DELTA}),
        "radmm_pure": (sides.radmm, {"delta": 0.0}),
        "diffprivlib": (sides.diffprivlib, NOTHING_CHOSEN),
    }
    chosen = {}
    for contender, side in [("diffprivlib_best", sides.diffprivlib), ("diffprivlib_old_best", sides.diffprivlib_old)]:
        chosen[contender] = side.ask("choose", name=name, epsilon=epsilon)
        contenders[contender] = side, {key: chosen[contender][key] for key in ("layout", "ridge")}
        print(f"{name}, ε = {epsilon:g}: the best of {chosen[contender]['tried']} is {contenders[contender][1]}", file=sys.stderr)
    fits: dict[str, list[dict[str, float]]] = {contender: [] for contender in contenders}
    for _ in range(repetitions):
        for contender, (side, parameters) in contenders.items():
            fits[contender].append(side.ask("fit", name=name, epsilon=epsilon, **parameters))
    return {"epsilon": epsilon, "chosen": chosen, **{contender: summary(some) for contender, some in fits.items()}}


def machine() -> str:
    """Returns what the machine is, in a few words."""
    model = platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{os.cpu_count()} cores of {model}, {platform.system().lower()}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("python")
    parser.add_argument("old_python")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--page", type=Path, help="the page between whose marks the results are written")
    parser.add_argument("--json", type=Path, help="a file for the results")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--only", nargs="+", choices=(ADULT, *FETCHED), help="some of the tables; not with --page")
    asked = parser.parse_args()
    if asked.page and asked.only:
        parser.error("--only leaves tables out, and the page has all of them: leave out --only or --page")
    if asked.repetitions < 2:
        parser.error("--repetitions: at least 2, for a standard error")
    return asked


def main() -> None:
    asked = arguments()
    load = os.getloadavg()[0]
    sides = Sides(
        radmm=Side(asked.python, "radmm_side.py"),
        diffprivlib=Side(asked.python, "diffprivlib_side.py"),
        diffprivlib_old=Side(asked.old_python, "diffprivlib_side.py"),
    )
    prepare(asked.folder, sides.radmm)
    names = asked.only or (ADULT, *FETCHED)
    results = {
        "machine": machine(),
        "load": load,
        "date": datetime.date.today().isoformat(),
        "repetitions": asked.repetitions,
        "delta": DELTA,
        "versions": [side.ask("versions") for side in sides],
        "tables": {name: measure_table(name, asked.folder, sides, asked.repetitions) for name in names},
    }
    for side in sides:
        side.close()
    text = markdown(results)
    print(text)
    if asked.json:
        asked.json.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if asked.page:
        replace_section(asked.page, text)


if __name__ == "__main__":
    main()
