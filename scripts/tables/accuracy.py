"""The table of docs/accuracy.md on other tables: radmm beside scikit-learn and diffprivlib.

    python accuracy.py RADMM FOLDER [PYTHON]

RADMM is the program, FOLDER gets the tables, the studies and the results, PYTHON is an interpreter with the packages of
bench/peers/requirements-private.txt (default: this one). Every table is split at random, three quarters to train and a quarter to test on. `radmm init`
drafts its study from the rows to train on, and what is changed in the draft is how a simulation deals out the rows: to five
parties that differ in size and in the share of their labels. The study has no algorithm section.
"""

import csv
import json
import random
import re
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
EPSILON, DELTA, REPETITIONS = "1", "1e-5", 20


def split(folder, name):
    """Writes the rows to train and to test on, the same whenever and wherever it is asked for."""
    with open(folder / f"{name}.csv", newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    random.Random(1).shuffle(rows)
    train = len(rows) * 3 // 4
    for part, some in [("train", rows[:train]), ("test", rows[train:])]:
        with open(folder / f"{name}.{part}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(some)


def study(radmm, folder, name):
    """Drafts the study, and deals its rows out to parties that differ."""
    path = folder / f"{name}.toml"
    command = [radmm, "init", f"{name}.train.csv", "--label", "label", "--parties", "5", "--epsilon", EPSILON]
    command += ["--delta", DELTA, "--out", path.name, "--force", "--quiet"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    text = path.read_text(encoding="utf-8")
    for old, new in [
        ('method = "shuffled"\nseed = 1', 'method = "dirichlet"\nalpha = 0.5\nseed = 1'),
        ("share = 0.2\nseed = 1", f'path = "{name}.test.csv"'),
        ("repetitions = 5", f"repetitions = {REPETITIONS}"),
    ]:
        assert old in text, old
        text = text.replace(old, new)
    assert "[algorithm]" not in text
    path.write_text(text, encoding="utf-8")


def run(radmm, folder, name):
    """Runs the study, and returns its accuracy on the rows to test on."""
    command = [radmm, "run", f"{name}.toml", "--json", "--quiet"]
    result = json.loads(subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout)
    accuracies = [one["held_out"]["accuracy"] for one in result["repetitions"]]
    largest = max(node["rows"] for node in result["nodes"])
    average = next(one for one in result["beside"] if one["name"] == "average")
    return {
        "radmm": statistics.mean(accuracies),
        "error": statistics.stdev(accuracies) / len(accuracies) ** 0.5,
        "no_noise": result["centralised"]["held_out"]["accuracy"],
        "average": statistics.mean(end["held_out"]["accuracy"] for end in average["ends"]) if average["ends"] else None,
        "rows": sum(node["rows"] for node in result["nodes"]),
        "largest": largest,
        "columns": len(result["columns"]),
    }


def percent(share):
    return "–" if share is None else f"{100 * share:.1f}"


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: python accuracy.py RADMM FOLDER [PYTHON]")
    radmm, folder = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2])
    python = sys.argv[3] if len(sys.argv) == 4 else sys.executable
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, HERE / "fetch.py", folder], check=True, stdout=sys.stderr)
    names = sorted(path.stem for path in folder.glob("*.csv") if re.fullmatch(r"[a-z]+", path.stem))
    ours = {}
    for name in names:
        split(folder, name)
        study(radmm, folder, name)
        ours[name] = run(radmm, folder, name)
        print(f"radmm: {name} {percent(ours[name]['radmm'])}", file=sys.stderr)
    peers = subprocess.run([python, HERE / "peers.py", folder, *names], check=True, stdout=subprocess.PIPE).stdout
    peers = json.loads(peers)
    print("| table | rows | columns | majority class | radmm, five parties that differ | averaged once | diffprivlib | diffprivlib, ridge in hindsight | "
          "radmm, no noise | scikit-learn, same columns | scikit-learn, raw columns |")
    print("|---" * 11 + "|")
    for name in names:
        our, peer = ours[name], peers[name]
        cells = [
            name, f"{our['rows']:,}", f"{peer['fields']} → {our['columns']}", percent(peer["majority"]),
            f"**{percent(our['radmm'])}** ± {percent(our['error'])}", percent(our["average"]),
            f"{percent(peer['diffprivlib'])} ± {percent(peer['diffprivlib_error'])}", percent(peer["diffprivlib_best"]),
            percent(our["no_noise"]), percent(peer["sklearn_encoded"]), percent(peer["sklearn_raw"]),
        ]
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
