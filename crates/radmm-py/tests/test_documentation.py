"""Documentation is run: the Python in README.md, docs/python.md, docs/sweeps.md and the package's own page, and the notebooks."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import os
import pkgutil
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import radmm

ROOT = Path(__file__).parents[3]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def python_blocks(page: Path) -> str:
    """Returns the Python of a page, at the lines where it stands."""
    lines, inside = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        if re.fullmatch(r"```(python)?", line):
            inside = line == "```python"
            lines.append("")
        else:
            lines.append(line if inside else "")
    return "\n".join(lines)


@pytest.mark.parametrize("page", ["README.md", "docs/python.md", "crates/radmm-py/README.md"])
def test_the_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = python_blocks(ROOT / page)
    assert "import radmm" in program
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    exec(compile(program, page, "exec"), {"__name__": "__main__"})


def test_the_sweep_of_a_page_runs_on_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    pytest.importorskip("ray", reason="Ray has no wheel for this Python")
    page = ROOT / "docs" / "sweeps.md"
    study = re.search(r"^cat > study.toml <<END\n(.*?)^END$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert study
    (tmp_path / "study.toml").write_text(study[1], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(compile(python_blocks(page), str(page), "exec"), {"__name__": "__main__"})
    rows = [line for line in capsys.readouterr().out.splitlines() if "total_epsilon" in line]
    assert len(rows) == 6
    assert all("one row of one party replaced" in row for row in rows)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_shows(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat: Any = pytest.importorskip("nbformat")
    nbclient: Any = pytest.importorskip("nbclient")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    content = nbformat.read(notebook, as_version=4)
    shown = [len(cell.get("outputs", [])) for cell in content.cells]
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(content, timeout=300, resources=resources, record_timing=False).execute()
    outputs = [output for cell in content.cells for output in cell.get("outputs", [])]
    assert not any(output.get("name") == "stderr" for output in outputs), "a notebook shows a warning"
    if os.environ.get("RADMM_BLESS"):
        nbformat.write(content, notebook)
    else:
        assert [len(cell.get("outputs", [])) for cell in content.cells] == shown


def test_there_are_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["five_parties", "private_classifier"]


def test_examples_in_docstrings_run() -> None:
    names = [name for _, name, _ in pkgutil.iter_modules(radmm.__path__) if name not in ("_radmm", "__main__")]
    if importlib.util.find_spec("ray") is None:
        names.remove("ray")
    modules = [importlib.import_module(f"radmm.{name}") for name in names]
    results = [doctest.testmod(module) for module in modules]
    assert sum(result.failed for result in results) == 0
    assert sum(result.attempted for result in results) >= 5


def test_every_public_name_has_a_docstring() -> None:
    for name in radmm.__all__:
        if not name.startswith("__") and name not in ("datasets", "plot"):
            assert getattr(radmm, name).__doc__, name
