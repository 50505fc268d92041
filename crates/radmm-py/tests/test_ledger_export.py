"""The account of a party as a database, which Python's own SQLite reads."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import radmm

CHARGES = 400


def ledger(folder: Path, *args: str) -> str:
    command = [sys.executable, "-m", "radmm", "ledger", *args, "--state", "network/node-0/state"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def test_sqlite_reads_an_account_of_many_charges(tmp_path: Path) -> None:
    study = radmm.Study(
        {
            "name": "a 'quoted', \"long\" name of a study",
            "data": {"builtin": "clinic"},
            "network": {"nodes": 2, "topology": "ring"},
            "algorithm": {"name": "r-admm", "iterations": 2 * CHARGES, "penalty": 3.0, "damping": 1.0},
            "privacy": {"mechanism": "objective", "epsilon": 20.0, "delta": 1e-5},
            "run": {"repetitions": 1, "seed": 3},
        }
    )
    study.save(tmp_path / "study.toml")
    up = ["up", "study.toml", "--seeded", "--dir", "network", "--quiet"]
    subprocess.run([sys.executable, "-m", "radmm", *up], cwd=tmp_path, check=True, capture_output=True)
    ledger(tmp_path, "export", "--sqlite", "account.db")
    file = (tmp_path / "account.db").read_bytes()
    assert 5 in {file[at] for at in range(4096, len(file), 4096)}, "there is a branch in the tree of charges"

    with sqlite3.connect(tmp_path / "account.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        charges = database.execute("SELECT * FROM charges").fetchall()
        assert len(charges) == CHARGES
        lines = list(csv.reader(io.StringIO(ledger(tmp_path, "export", "--csv"))))
        columns = [name for _, name, *_ in database.execute("PRAGMA table_info(charges)")]
        assert lines[0] == columns
        for row, line in zip(charges, lines[1:], strict=True):
            for value, field in zip(row, line, strict=True):
                assert value is None if field == "" else type(value)(field) == value
        found = database.execute("SELECT iteration FROM charges WHERE rowid = ?", (CHARGES,)).fetchone()
        assert found == (charges[-1][columns.index("iteration")],)

        shown = json.loads(ledger(tmp_path, "show", "--json"))
        (own,) = database.execute("SELECT name, charges, epsilon, delta FROM studies JOIN totals ON study = number")
        total = shown["studies"][0]["totals"][0]
        assert own == (study.name, CHARGES, total["epsilon"], total["delta"])
        # It is a database like any other.
        database.execute("DELETE FROM charges WHERE rowid % 2 = 0")
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
