"""Rows that the workers of a Ray cluster hold: the bits of one process, whatever happens to workers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import radmm
from radmm import _radmm

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
ray = pytest.importorskip("ray", reason="Ray has no wheel for this Python")
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

import radmm.ray  # noqa: E402
from radmm.ray import _Workers  # noqa: E402

#: Four chunks of complete rows, the last of which is not full.
ROWS = 60_000

#: The processes of the workers at the pass that is being disturbed.
PROCESSES: list[int] = []

BOUNDS: dict[str, Any] = {"age": (0.0, 100.0), "pressure": (50.0, 250.0)}
CATEGORIES = {"ward": ["north", "south", "west"]}

#: The settings of a cluster that reaches nobody.
CLUSTER: dict[str, Any] = {
    "address": "local",
    "num_cpus": 4,
    "include_dashboard": False,
    "object_store_memory": 100 * 2**20,
    "log_to_driver": False,
    "logging_level": "ERROR",
}


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(**CLUSTER)
    yield
    ray.shutdown()


def table(rows: int = ROWS, seed: int = 3) -> Any:
    """Returns rows, some of which lack a value."""
    rng = np.random.default_rng(seed)
    age, pressure = rng.uniform(0, 100, rows), rng.normal(130, 25, rows)
    ward = rng.integers(0, 3, rows)
    ill = age + pressure + 20 * ward + rng.normal(0, 30, rows) > 200
    return pyarrow.table(
        {
            "age": pyarrow.array(age, mask=rng.uniform(size=rows) < 0.05),
            "pressure": pressure,
            "ward": np.array(CATEGORIES["ward"])[ward],
            "ill": np.where(ill, "yes", "no"),
            "note": np.arange(rows),
        }
    )


def write(folder: Path, whole: Any) -> Path:
    """Writes rows into two files, by row groups whose sizes have nothing to do with chunks."""
    folder.mkdir(parents=True, exist_ok=True)
    parquet.write_table(whole.slice(0, 23_456), folder / "a.parquet", row_group_size=7_000)
    parquet.write_table(whole.slice(23_456), folder / "b.parquet", row_group_size=11_111)
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("rows") / "rows", table())


def classifier(**parameters: Any) -> Any:
    return radmm.PrivateLinearClassifier(epsilon=1.0, delta=1e-6, bounds=BOUNDS, categories=CATEGORIES, **parameters)


def fitted(files: Path, **parameters: Any) -> Any:
    with pytest.warns(radmm.DroppedRowsWarning):
        return classifier(**parameters).fit(radmm.ray.Rows(files, workers=4), "ill")


@pytest.fixture(scope="module")
def expected() -> Any:
    """The fit of one process."""
    whole = table()
    X = whole.select(["age", "pressure", "ward"])
    with pytest.warns(radmm.DroppedRowsWarning):
        return classifier(random_state=5).fit(X, whole["ill"])


def assert_same_bits(model: Any, expected: Any) -> None:
    assert model.coef_.tobytes() == expected.coef_.tobytes()
    assert model.intercept_.tobytes() == expected.intercept_.tobytes()
    assert model.guarantee_.epsilon == expected.guarantee_.epsilon


@pytest.fixture
def disturb(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Does something to the workers right after some passes were sent to them."""

    def disturb(at: set[int], work: Callable[[_Workers], None]) -> list[int]:
        passes: list[int] = []
        submit = _Workers.submit

        def watched(self: _Workers, requests: Any) -> Any:
            passes.append(len(requests))
            if len(passes) in at:
                # Asked for before the pass is sent: a worker does one thing after the other.
                PROCESSES[:] = [int(ray.get(actor.__ray_call__.remote(lambda _: os.getpid()))) for actor in self._actors]
            asked = submit(self, requests)
            if len(passes) in at:
                work(self)
            return asked

        monkeypatch.setattr(_Workers, "submit", watched)
        return passes

    return disturb


def kill(index: int) -> None:
    """Kills the process of a worker, as a machine that fails does."""
    os.kill(PROCESSES[index], signal.SIGKILL)


@pytest.mark.parametrize("workers", [1, 3, 4, 9])
def test_any_number_of_workers_has_the_bits_of_one_process(files: Path, expected: Any, workers: int) -> None:
    rows = radmm.ray.Rows(files, workers=workers, options={"num_cpus": 0})
    with pytest.warns(radmm.DroppedRowsWarning):
        model = classifier(random_state=5).fit(rows, "ill")
    assert_same_bits(model, expected)
    assert list(model.classes_) == ["no", "yes"]
    assert list(model.feature_names_in_) == ["age", "pressure", "ward"]
    complete = table().drop_null().select(list(model.feature_names_in_))
    assert np.array_equal(model.predict(complete), expected.predict(complete))


@pytest.mark.parametrize(
    "loss",
    [
        lambda workers: ray.kill(workers._actors[2], no_restart=False),
        lambda workers: ray.kill(workers._actors[0]),
        lambda _: kill(1),
        lambda _: [kill(index) for index in range(4)],
    ],
    ids=["killed by Ray", "given up by Ray", "kill -9", "kill -9 of all"],
)
def test_workers_lost_in_the_middle_of_passes_change_no_bit(files: Path, expected: Any, disturb: Any, loss: Any) -> None:
    passes = disturb({2, 5}, loss)
    assert_same_bits(fitted(files, random_state=5), expected)
    assert len(passes) > 5


def test_a_lost_worker_costs_no_second_charge(files: Path, tmp_path: Path, disturb: Any) -> None:
    undisturbed = fitted(files, ledger=tmp_path / "undisturbed")
    passes = disturb({1, 4, 6}, lambda _: kill(3))
    model = fitted(files, ledger=tmp_path / "ledger")
    assert len(passes) > 6
    assert model.guarantee_.protects
    assert model.guarantee_.epsilon == undisturbed.guarantee_.epsilon
    assert model.ledger_ == undisturbed.ledger_


def study_of_two(folder: Path, rows: int) -> tuple[Any, dict[str, Any]]:
    """Returns a study of two parties whose noise repeats, and their sites. The second one has few rows in a CSV file."""
    keys = {}
    for name in ("alder", "birch"):
        made = subprocess.run(
            [sys.executable, "-m", "radmm", "key", "new", str(folder / f"{name}.pem")], capture_output=True, text=True, check=True
        )
        keys[name] = next(word for word in made.stdout.split() if word.startswith("ed25519:"))
    (folder / "birch.csv").write_text(
        "age,pressure,ward,ill\n" + "".join(f"{k % 90},{90 + k % 77},south,{'yes' if k % 3 else 'no'}\n" for k in range(500))
    )
    study = radmm.Study(
        {
            "name": "two clinics",
            "data": {
                "label": "ill",
                "positive": "yes",
                "numeric": {name: {"bounds": list(pair), "splines": 5} for name, pair in BOUNDS.items()},
                "categorical": CATEGORIES,
            },
            "parties": [{"name": "alder", "key": keys["alder"], "rows": rows}, {"name": "birch", "key": keys["birch"], "rows": 500}],
            "privacy": {"epsilon": 2.0, "delta": 1e-6},
        }
    )
    sites = {
        name: {
            "key": f"{name}.pem",
            "state": f"{name}-state",
            "noise": "seeded",
            "data": {"path": "rows" if name == "alder" else "birch.csv"},
        }
        for name in keys
    }
    return study, sites


class Pair:
    """Two parties that talk through queues."""

    def __init__(self, study: Any, sites: Any, folder: Path, state: str, alder: Any = None) -> None:
        self.out = folder / f"{state}-results"
        self.parties: dict[str, radmm.Party] = {}
        self.queue: list[tuple[str, str, bytes]] = []
        for name, rows in (("alder", alder), ("birch", None)):
            self.parties[name] = radmm.Party(
                study,
                {**sites[name], "state": f"{state}-{name}"},
                rows=rows,
                folder=folder,
                send=lambda peer, message, name=name: self.queue.append((peer, name, message)),  # type: ignore[misc]
            )
        for party in self.parties.values():
            party.start()

    def run(self) -> dict[str, bytes]:
        while not all(party.done for party in self.parties.values()):
            receiver, sender, message = self.queue.pop(0)
            self.parties[receiver].receive(sender, message)
        written = [path for name, party in self.parties.items() for path in party.save(self.out / name)]
        return {str(path.relative_to(self.out)): path.read_bytes() for path in written}

    def close(self) -> None:
        for party in self.parties.values():
            party.close()


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two parties, and what they write if the first one reads its files itself."""
    folder = tmp_path_factory.mktemp("network")
    write(folder / "rows", table())
    study, sites = study_of_two(folder, table().drop_null().num_rows)
    pair = Pair(study, sites, folder, "alone")
    written = pair.run()
    pair.close()
    return folder, study, sites, written


def test_a_party_with_workers_writes_the_bytes_of_one_without(network: Any, disturb: Any) -> None:
    folder, study, sites, expected = network
    passes = disturb({2, 3}, lambda _: kill(2))
    pair = Pair(study, sites, folder, "workers", radmm.ray.Rows(folder / "rows", workers=4))
    written = pair.run()
    assert len(passes) > 3
    pair.close()
    transcript = "alder/transcript.jsonl"
    assert transcript in written and written.keys() == expected.keys()
    for name, content in written.items():
        assert content == expected[name], name


def test_an_account_knows_rows_with_workers_and_without(network: Any) -> None:
    """The state of a party that read its files itself is continued with workers, however many there are."""
    folder, study, sites, _ = network
    for workers in (1, 4):
        pair = Pair(study, sites, folder, "alone", radmm.ray.Rows(folder / "rows", workers=workers))
        assert pair.parties["alder"].finished
        pair.close()
    other = write(folder / "other", table(seed=4))
    with pytest.raises(radmm.RadmmError, match=r"rows"):
        Pair(study, sites, folder, "alone", radmm.ray.Rows(other, workers=4))


def test_files_that_changed_are_an_error_without_a_charge(files: Path, tmp_path: Path, disturb: Any) -> None:
    mine = write(tmp_path / "rows", table())

    def change(workers: _Workers) -> None:
        write(mine, table(seed=9))
        kill(0)

    disturb({3}, change)
    ledger = tmp_path / "ledger"
    with pytest.raises(radmm.PartyError, match="other rows|rows changed") as refused:
        classifier(ledger=ledger).fit(radmm.ray.Rows(mine, workers=4), "ill")
    assert "nothing of it was recorded" in str(refused.value)
    # With the right rows the fit goes on, and costs what one fit costs.
    write(mine, table())
    resumed = fitted(mine, ledger=ledger)
    assert resumed.ledger_ == fitted(files, ledger=tmp_path / "undisturbed").ledger_


def test_files_that_change_while_they_are_read_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = write(tmp_path / "rows", table())
    describe = _Workers.describe

    def changed(self: _Workers) -> list[bytes]:
        descriptions = describe(self)
        with (mine / "b.parquet").open("ab") as file:
            file.write(b"more")
        return descriptions

    monkeypatch.setattr(_Workers, "describe", changed)
    with pytest.raises(radmm.DataError, match="changed while they were read"):
        classifier(random_state=1).fit(radmm.ray.Rows(mine, workers=2), "ill")


DRIVER = """
import os, signal, sys
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
sys.path.insert(0, sys.argv[1])
import ray, radmm.ray, test_ray
from radmm.ray import _Workers
ray.init(**test_ray.CLUSTER)
submit, passes = _Workers.submit, []
def deadly(self, requests):
    asked = submit(self, requests)
    passes.append(1)
    if len(passes) == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return asked
_Workers.submit = deadly
test_ray.classifier(ledger=sys.argv[3]).fit(radmm.ray.Rows(sys.argv[2], workers=4), "ill")
"""


def test_a_fit_whose_process_is_killed_goes_on_at_one_charge(files: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    arguments = [sys.executable, "-c", DRIVER, str(Path(__file__).parent), str(files), str(ledger)]
    killed = subprocess.run(arguments, capture_output=True, text=True, timeout=240, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    resumed = fitted(files, ledger=ledger)
    assert resumed.ledger_ == fitted(files, ledger=tmp_path / "undisturbed").ledger_


def test_ctrl_c_ends_a_pass_that_waits_for_a_worker(files: Path, tmp_path: Path, disturb: Any) -> None:
    def stop(workers: _Workers) -> None:
        # A worker that replies no more, and does not die.
        os.kill(PROCESSES[1], signal.SIGSTOP)
        stopped.append(workers)
        threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

    stopped: list[_Workers] = []
    disturb({4}, stop)
    ledger = tmp_path / "ledger"
    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        classifier(ledger=ledger).fit(radmm.ray.Rows(files, workers=4), "ill")
    assert stopped and time.monotonic() - before < 120


def test_ctrl_c_ends_a_question_to_a_party(network: Any, disturb: Any) -> None:
    folder, study, sites, expected = network
    stopped: list[Any] = []

    def stop(workers: _Workers) -> None:
        if not stopped:
            stopped.extend(workers._actors)
            os.kill(PROCESSES[1], signal.SIGSTOP)
            threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

    disturb({2}, stop)
    pair = Pair(study, sites, folder, "interrupted", radmm.ray.Rows(folder / "rows", workers=4))
    with pytest.raises(KeyboardInterrupt):
        pair.run()
    pair.close()
    pair = Pair(study, sites, folder, "interrupted", radmm.ray.Rows(folder / "rows", workers=4))
    assert pair.run() == expected
    pair.close()


def test_a_wrong_reply_is_an_error(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collect = _Workers.collect
    found: list[Any] = []

    def tampered(self: _Workers, asked: Any, seconds: float) -> Any:
        replies = collect(self, asked, seconds)
        if replies is None or asked[0].method == "describe":
            return replies
        found.append(replies[0])
        # That of an earlier pass.
        return [found[0], *replies[1:]]

    monkeypatch.setattr(_Workers, "collect", tampered)
    with pytest.raises(radmm.PartyError, match="reply of worker 0: it is to another request"):
        classifier(random_state=5).fit(radmm.ray.Rows(files, workers=4), "ill")


def test_wrong_use_is_named(files: Path, tmp_path: Path) -> None:
    rows = radmm.ray.Rows(files, workers=2)
    assert repr(rows) == f"radmm.ray.Rows({str(files)!r}, workers=2)"
    with pytest.raises(radmm.DataError, match=r"nowhere"):
        radmm.ray.Rows(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="at least 1"):
        radmm.ray.Rows(files, workers=0)
    with pytest.raises(ValueError, match='format="sas"'):
        radmm.ray.Rows(files, workers=1, format="sas")
    with pytest.raises(ValueError, match="its name, not ndarray"):
        classifier(random_state=1).fit(rows, np.zeros(3))
    with pytest.raises(ValueError, match="dictionary of pairs"):
        radmm.PrivateLinearClassifier(bounds=(0, 1), random_state=1).fit(rows, "ill")
    with pytest.raises(ValueError, match="not the label"):
        classifier(random_state=1).fit(rows, "ward")
    with pytest.raises(radmm.DataError, match="no column .*absent"):
        classifier(random_state=1).fit(rows, "absent")
    with pytest.raises(ValueError, match="two classes, and column 'note'"):
        classifier(random_state=1).fit(rows, "note")
    narrow = {**CATEGORIES, "ward": ["north", "south"]}
    with pytest.raises(radmm.DataError, match="row .*ward.*west"):
        radmm.PrivateLinearClassifier(bounds=BOUNDS, categories=narrow, random_state=1).fit(rows, "ill")
    with pytest.raises(ValueError, match="a simulation holds"):
        radmm.RecycledADMMClassifier().fit(rows, "ill")


def test_the_python_of_the_page_runs(network: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, study, sites, _ = network
    study.save(folder / "study.toml")
    (folder / "site.toml").write_text(radmm._study.toml_of({**sites["alder"], "state": "state-of-page"}))
    monkeypatch.chdir(folder)
    monkeypatch.setattr(ray, "init", lambda: None)
    page = Path(__file__).parents[3] / "docs" / "cluster.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    with pytest.warns(radmm.DroppedRowsWarning):
        exec("\n".join(blocks), {"__name__": "__main__"})
    assert (folder / "ledger" / "fits" / "fit 1" / "model.json").is_file()


def test_the_package_does_not_import_ray_and_says_how_to_install_it() -> None:
    program = """
import sys, radmm, radmm.sklearn
assert "ray" not in sys.modules
sys.modules["ray"] = None
try:
    import radmm.ray
except ImportError as error:
    assert 'pip install "radmm[ray]"' in str(error), error
else:
    raise SystemExit("imported")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_worker_refuses_requests_about_other_rows(files: Path) -> None:
    """What a worker is sent is checked by itself: by rows, version and length."""
    _, pieces = _radmm.row_pieces(files, None)
    study = radmm._study.toml_of(
        {
            "data": {"label": "ill", "positive": "yes", "numeric": {"pressure": [50, 250]}},
            "privacy": {"epsilon": 1.0, "delta": 1e-6},
        }
    )
    counts = _radmm.count_pieces(study, True, pieces)
    assert sum(read for read, *_ in counts) == ROWS
    held = _radmm.HeldChunks(study, True, [(pieces[0], counts[0][1])], 0, 100, 0, 1)
    assert held.describe() == _radmm.HeldChunks(study, True, [(pieces[0], counts[0][1])], 0, 100, 0, 2).describe()
    with pytest.raises(radmm.DataError, match="request"):
        held.reply(b"radmmrq1 and nonsense")
    with pytest.raises(radmm.DataError, match="changed while"):
        _radmm.HeldChunks(study, True, [(pieces[0], counts[0][1] + 1)], 0, 100, 0, 1)
