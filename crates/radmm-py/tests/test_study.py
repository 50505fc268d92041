"""Studies: what the command line does, from Python, with the same numbers and messages."""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import radmm
from radmm.datasets import Dataset


def command(*args: str, cwd: Path | None = None) -> str:
    ran = subprocess.run([sys.executable, "-m", "radmm", *args], cwd=cwd, capture_output=True, text=True, check=True)
    return ran.stdout


def without_times(result: dict[str, Any]) -> dict[str, Any]:
    for candidate in result["contenders"]:
        del candidate["seconds"]
    return result


@pytest.fixture
def file(study: radmm.Study, tmp_path: Path) -> str:
    path = tmp_path / "study.toml"
    study.save(path)
    return str(path)


def test_a_run_is_that_of_the_command_line(study: radmm.Study, file: str) -> None:
    result = study.run(progress=False)
    out = Path(file).with_name("results")
    assert result.text() == command("run", file, "--quiet", "--out", str(out))
    assert result.to_dict() == json.loads((out / "result.json").read_text())
    assert result.report() == (out / "report.html").read_text()
    assert result.statement() == json.loads((out / "privacy-statement.json").read_text())
    assert radmm.Study.read(file) == study


def test_a_result_is_a_frame_a_model_a_guarantee_and_figures(study: radmm.Study, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    result = study.run(progress=False)
    frame = result.frame()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == 2 * (result.model.iterations + 1)  # type: ignore[union-attr]
    assert {"repetition", "t", "loss", "epsilon", "consensus"} <= set(frame.columns)
    assert len(result.frame("parties")) == 10
    methods = result.frame("methods")
    assert list(methods["method"])[0] == "consensus" and methods["held_out"].iloc[0] == result.accuracy
    guarantee = result.guarantee
    assert guarantee.epsilon <= 1.0 and not guarantee.protects and "simulation" in guarantee.reason
    assert result.model is not None and result.model.guarantee is not None
    html = result._repr_html_()
    assert html.count("data:image/svg+xml") == len(result.figures) >= 2
    assert "http://" not in html and "https://" not in html
    assert str(guarantee) in html.replace("&#x27;", "'")
    names = {path.name for path in result.save(tmp_path / "results")}
    assert names == {"result.json", "report.html", "privacy-statement.json", "study.toml", "model.json"}
    again = radmm.Model.read(tmp_path / "results" / "model.json")
    assert again == result.model
    figure = radmm.plot.figure(result, "accuracy")
    figure.save(tmp_path / "accuracy.svg")
    figure.save(tmp_path / "accuracy.csv")
    assert (tmp_path / "accuracy.svg").read_text().startswith("<svg")
    with pytest.raises(KeyError, match="there are accuracy"):
        radmm.plot.figure(result, "nothing")


def test_frames_are_of_polars_where_that_is_asked_for(study: radmm.Study) -> None:
    polars = pytest.importorskip("polars")
    result = study.run(progress=False, baselines=False)
    assert isinstance(result.frame(library="polars"), polars.DataFrame)
    with pytest.raises(ValueError, match="a frame is of"):
        result.frame("rows")  # type: ignore[arg-type]


def test_bill_plan_and_certificate_are_those_of_the_command_line(study: radmm.Study, file: str) -> None:
    bill = study.bill()
    assert bill.text() == command("privacy", file, "--quiet")
    assert bill.guarantee.epsilon <= 1.0
    assert len(bill.frame()) == 5
    plan = study.plan([1.0], progress=False)
    assert plan.to_dict() == json.loads(command("plan", file, "--epsilon", "1", "--json", "--quiet"))
    assert len(plan.frame()) == 1
    admm = {**study.to_dict(), "algorithm": {"name": "r-admm"}}
    certificate = radmm.Study(admm).certify(progress=False)
    assert "converges" in certificate.text() or "rate" in certificate.text()


def test_sizes_stand_for_rows_in_a_bill() -> None:
    study = radmm.Study(
        {
            "data": {"path": "nowhere.csv", "label": "y", "positive": "1", "numeric": {"x": [0, 1]}},
            "network": {"nodes": 3},
            "privacy": {"epsilon": 1.0, "delta": 1e-6},
        }
    )
    bill = study.bill(sizes=[100, 200, 300])
    assert [node["rows"] for node in bill.to_dict()["nodes"]] == [100, 200, 300]
    with pytest.raises(radmm.DataError, match="nowhere.csv"):
        study.bill()


def test_rows_take_the_place_of_those_of_the_study(clinic: Dataset) -> None:
    with pytest.warns(radmm.PublicBoundsWarning, match="not public"):
        study = radmm.Study.auto(clinic.frame, label="readmitted", by="hospital", epsilon=2.0)
    assert study.parties == 5
    result = study.run(rows=clinic.frame, progress=False)
    assert [node["name"] for node in result.to_dict()["nodes"]] == ["Alder", "Birch", "Cedar", "Maple", "Rowan"]
    assert result.accuracy > 0.6


def test_comparisons_are_those_of_the_command_line(study: radmm.Study, tmp_path: Path) -> None:
    loss = {"problem": {"loss": "smooth-hinge"}}
    other = radmm.Study({**study.to_dict(), "name": "admm", "algorithm": {"name": "r-admm"}, **loss})
    compared = radmm.compare([study, other], epsilon=2.0, progress=False)
    for name, one in (("clinic", study), ("admm", other)):
        one.save(tmp_path / f"{name}.toml")
    printed = command("compare", "clinic.toml", "admm.toml", "--epsilon", "2", "--json", "--quiet", cwd=tmp_path)
    assert without_times(compared.to_dict()) == without_times(json.loads(printed))
    assert list(compared.frame()["name"])[:2] == ["clinic", "admm"]
    assert compared.figures and compared.report().startswith("<!doctype html>")
    with pytest.raises(ValueError, match="no prior method"):
        radmm.compare([study], prior_methods=["xyz"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="at least one study"):
        radmm.compare([])


def test_an_error_names_file_line_and_key(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text('[data]\nbuiltin = "clinic"\n\n[network]\nnodes = 1\n')
    with pytest.raises(radmm.StudyError) as wrong:
        radmm.Study.read(path)
    assert wrong.value.file == str(path) and wrong.value.line == 5
    assert wrong.value.key is not None and "nodes" in wrong.value.key
    again = pickle.loads(pickle.dumps(wrong.value))
    assert (str(again), again.line) == (str(wrong.value), 5)
    ran = subprocess.run([sys.executable, "-m", "radmm", "run", str(path)], capture_output=True, text=True, check=False)
    assert ran.returncode == 2 and ran.stderr == f"error: {wrong.value}\n"


def test_notes_are_warnings() -> None:
    text = '[data]\nbuiltin = "clinic"\n[network]\nnodes = 3\n[data.split]\nseed = 3\n[privacy]\nepsilon = 1\n'
    with pytest.warns(radmm.StudyWarning, match="not used by round-robin") as caught:
        study = radmm.Study.parse(text)
    assert study.notes == [str(warning.message) for warning in caught]


def test_a_limit_ends_a_run_early(study: radmm.Study) -> None:
    result = study.run(limit=0.5, progress=False)
    assert result.stopped is not None and result.model is None
    assert result.guarantee.epsilon <= 0.5


def test_studies_survive_pickling(study: radmm.Study) -> None:
    again = pickle.loads(pickle.dumps(study))
    assert again == study and again.to_toml() == study.to_toml() and hash(again) == hash(study)


def test_numbers_of_numpy_and_paths_are_plain_data(tmp_path: Path) -> None:
    study = radmm.Study(
        {
            "data": {"path": tmp_path / "x.csv", "label": "y", "positive": "1", "numeric": {"x": np.array([0.0, 1.0])}},
            "network": {"nodes": np.int64(3)},
            "privacy": {"epsilon": np.float64(1.0), "delta": 1e-6},
        }
    )
    assert study.parties == 3
    with pytest.raises(TypeError, match="no set"):
        radmm.Study({"data": {"builtin": {"clinic"}}})


def test_progress_is_shown_and_can_stop_a_run(study: radmm.Study) -> None:
    seen: list[tuple[int, int, str]] = []
    study.run(progress=lambda *args: seen.append(args))
    assert seen and seen[-1][0] <= seen[-1][1]
    assert [steps for steps, _, _ in seen] == sorted(steps for steps, _, _ in seen)

    def stop(*_: Any) -> None:
        raise TimeoutError("enough")

    with pytest.raises(TimeoutError, match="enough"):
        study.run(progress=stop)


def long_study() -> radmm.Study:
    return radmm.Study(
        {
            "data": {"builtin": "adult"},
            "network": {"nodes": 20},
            "algorithm": {"name": "r-admm", "iterations": 5000},
            "privacy": {"epsilon": 1.0, "delta": 1e-5},
            "run": {"repetitions": 20, "seed": 1},
        }
    )


def test_an_interrupt_ends_a_run_within_half_a_second(tmp_path: Path) -> None:
    program = tmp_path / "run.py"
    program.write_text(
        "import sys, time, pickle, radmm\n"
        "study = pickle.loads(open(sys.argv[1], 'rb').read())\n"
        "print('running', flush=True)\n"
        "try:\n"
        "    study.run(progress=False)\n"
        "except KeyboardInterrupt:\n"
        "    print(time.time(), flush=True)\n"
    )
    pickled = tmp_path / "study.pickle"
    pickled.write_bytes(pickle.dumps(long_study()))
    process = subprocess.Popen([sys.executable, str(program), str(pickled)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "running\n"
    time.sleep(2)
    sent = time.time()
    process.send_signal(signal.SIGINT)
    ended = process.stdout.readline()
    process.kill()
    assert float(ended) - sent < 0.5 + 0.2, "0.5 s, and 0.2 s for a busy machine"
    print(f"ended {float(ended) - sent:.3f} s after the interrupt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.py", "study.pickle"]


def test_other_threads_work_while_rust_computes() -> None:
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0.001)

    other = threading.Thread(target=count)
    other.start()

    def stop(steps: int, _total: int, _message: str) -> None:
        if counted > 20:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        long_study().run(progress=stop)
    done.set()
    other.join()
    assert counted > 20


def test_the_command_line_stops_at_ctrl_c(tmp_path: Path) -> None:
    long_study().save(tmp_path / "study.toml")
    process = subprocess.Popen([sys.executable, "-m", "radmm", "run", "study.toml", "--quiet"], cwd=tmp_path)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=5) != 0


def test_the_package_has_its_licences_and_no_path_of_its_builder() -> None:
    package = Path(radmm.__file__).parent
    licences = {path.name: path.read_text(encoding="utf-8") for path in (package / "licences").iterdir()}
    assert set(licences) == {"LICENSE-APACHE", "LICENSE-MIT", "adult.NOTICE.md", "third-party-licences"}
    assert all(crate in licences["third-party-licences"] for crate in ("pyo3 v", "arrow-array v", "ring v", "rayon v"))
    native = next(package.glob("_radmm*.so")).read_bytes()
    for path in (Path.home() / ".cargo", Path(__file__).parents[3]):
        assert str(path).encode() not in native, path


def test_the_command_comes_with_the_package() -> None:
    assert command("--version").split() == ["radmm", radmm.__version__]
    script = Path(sys.executable).with_name("radmm")
    assert script.exists()
    ran = subprocess.run([script, "no-such-command"], capture_output=True, text=True, check=False)
    assert ran.returncode == 2 and "no-such-command" in ran.stderr


def test_a_network_of_processes_runs_by_the_command_of_the_package(study: radmm.Study, tmp_path: Path) -> None:
    content = study.to_dict() | {"network": {"nodes": 3, "topology": "path"}}
    content["run"] = {"repetitions": 1, "seed": 3}
    radmm.Study(content).save(tmp_path / "study.toml")
    command("up", "study.toml", "--dir", "network", "--quiet", cwd=tmp_path)
    network = next(path.parent for path in tmp_path.glob("**/study.toml") if path.parent != tmp_path)
    transcripts = sorted(tmp_path.glob("**/transcript.jsonl"))
    assert len(transcripts) == 3
    statements = sorted(tmp_path.glob("**/privacy-statement.json"))
    models = sorted(tmp_path.glob("**/model.json"))
    verified = radmm.verify(radmm.Study.read(network / "study.toml"), transcripts, statements=statements, models=models)
    assert verified and not verified.faults
    # Half of a transcript does not hold.
    lines = transcripts[0].read_text().splitlines(keepends=True)
    transcripts[0].write_text("".join(lines[:-3]))
    verified = radmm.verify(radmm.Study.read(network / "study.toml"), transcripts)
    assert not verified and verified.faults
    with pytest.raises(radmm.VerificationError):
        radmm.verify(radmm.Study.read(network / "study.toml"), [tmp_path / "nothing.jsonl"])
