"""Parties whose messages are carried by somebody else: the bytes of real nodes, restarts, and wrong use."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

import radmm
from radmm.datasets import Dataset

STUDY = {
    "name": "five over queues",
    "data": {"builtin": "clinic"},
    "network": {"nodes": 5, "topology": "ring"},
    "privacy": {"epsilon": 1.0, "delta": 1e-5},
    "run": {"repetitions": 1, "seed": 3},
}


class Network:
    """Parties in one process, with a queue from each to each of its neighbours."""

    def __init__(self, study: Path, sites: dict[str, Any], **options: Any) -> None:
        self.study, self.sites, self.options = study, sites, options
        self.queues: dict[tuple[str, str], deque[bytes]] = {}
        self.parties: dict[str, radmm.Party] = {}
        for name in sites:
            self.open(name)

    def open(self, name: str) -> None:
        def send(peer: str, message: bytes) -> None:
            self.queues.setdefault((name, peer), deque()).append(message)

        rows = self.options.get("rows", {}).get(name)
        party = radmm.Party(self.study, self.sites[name], send=send, rows=rows, folder=self.study.parent)
        assert party.name == name
        self.parties[name] = party
        party.start()

    def step(self, choose: Callable[[list[Any]], Any]) -> bool:
        """Delivers the next message of one queue."""
        waiting = sorted(edge for edge, queue in self.queues.items() if queue)
        if not waiting:
            return False
        edge = choose(waiting)
        sender, receiver = edge
        self.parties[receiver].receive(sender, self.queues[edge].popleft())
        return True

    def run(self, choose: Callable[[list[Any]], Any]) -> None:
        while not all(party.done for party in self.parties.values()):
            assert self.step(choose), {name: party.status for name, party in self.parties.items()}

    def close(self) -> None:
        for party in self.parties.values():
            party.close()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five real nodes: processes that talk over TLS. Their noise repeats from the study's seed."""
    folder = tmp_path_factory.mktemp("nodes")
    radmm.Study(STUDY).save(folder / "study.toml")
    subprocess.run(
        [sys.executable, "-m", "radmm", "up", "study.toml", "--seeded", "--dir", "network", "--quiet"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder / "network"


def copied(nodes: Path, to: Path) -> tuple[Path, dict[str, Path]]:
    """Returns study and sites of the same network, without what the nodes did."""
    shutil.copytree(nodes, to / "network", ignore=shutil.ignore_patterns("state*", "results*"))
    network = to / "network"
    return network / "study.toml", {site.parent.name: site for site in network.glob("*/site.toml")}


def assert_same_files(nodes: Path, network: Network, folder: Path) -> None:
    for name, party in network.parties.items():
        written = party.save(folder / name)
        assert {path.name for path in written} == {"transcript.jsonl", "privacy-statement.json", "model.json"}
        for path in written:
            expected = next(nodes.glob(f"{name}/**/{path.name}"))
            assert path.read_bytes() == expected.read_bytes(), path


@pytest.mark.parametrize("order", ["first", "last", "random"])
def test_five_over_queues_have_the_bytes_of_nodes(nodes: Path, tmp_path: Path, order: str) -> None:
    choose = {
        "first": lambda waiting: waiting[0],
        "last": lambda waiting: waiting[-1],
        "random": random.Random(5).choice,
    }[order]
    network = Network(*copied(nodes, tmp_path))
    network.run(choose)
    assert_same_files(nodes, network, tmp_path / "out")
    network.close()


def test_parties_that_are_killed_at_any_moment_change_no_byte(nodes: Path, tmp_path: Path) -> None:
    """Sixty restarts, with whatever was on its way still in the queues, old messages among it."""
    chance = random.Random(11)
    network = Network(*copied(nodes, tmp_path))
    for _ in range(60):
        for _ in range(chance.randrange(60)):
            network.step(chance.choice)
        name = chance.choice(sorted(network.parties))
        network.parties[name].close()
        network.open(name)
    network.run(chance.choice)
    assert_same_files(nodes, network, tmp_path / "out")
    network.close()


def test_lost_messages_are_sent_again_after_connect(nodes: Path, tmp_path: Path) -> None:
    chance = random.Random(7)
    network = Network(*copied(nodes, tmp_path))
    for _ in range(30):
        for _ in range(chance.randrange(40)):
            network.step(chance.choice)
        one = chance.choice(sorted(network.parties))
        other = chance.choice(network.parties[one].neighbours)
        # A connection broke: what was on its way in both directions is lost, and both sides know.
        for edge in ((one, other), (other, one)):
            network.queues.get(edge, deque()).clear()
        for name, peer in ((one, other), (other, one)):
            network.parties[name].connect(peer)
    network.run(chance.choice)
    assert_same_files(nodes, network, tmp_path / "out")
    network.close()


def test_parties_on_threads_with_data_frames_and_secret_noise(clinic: Dataset, tmp_path: Path) -> None:
    """Three parties with rows of their own, in data frames; each on a thread, over blocking queues."""
    names = ["alder", "birch", "cedar"]
    frame: Any = clinic.frame
    parts = {name: frame.iloc[k::3] for k, name in enumerate(names)}
    keys = {}
    for name in names:
        made = subprocess.run(
            [sys.executable, "-m", "radmm", "key", "new", str(tmp_path / f"{name}.pem")],
            capture_output=True,
            text=True,
            check=True,
        )
        keys[name] = next(word for word in made.stdout.split() if word.startswith("ed25519:"))
    study = radmm.Study(
        {
            "name": "three hospitals",
            "data": {
                "label": clinic.label,
                "positive": "yes",
                "numeric": {name: {"bounds": list(pair), "splines": 6} for name, pair in clinic.bounds.items()},
                "categorical": clinic.categories,
            },
            "parties": [{"name": name, "key": keys[name], "rows": len(parts[name])} for name in names],
            "privacy": {"epsilon": 2.0, "delta": 1e-5},
        }
    )
    queues: dict[str, Queue[tuple[str, bytes]]] = {name: Queue() for name in names}
    parties = {}
    for name in names:
        site = {
            "key": f"{name}.pem",
            "state": f"{name}-state",
            "data": {"path": "rows.csv"},
            "limit": {"epsilon": 3.0, "delta": 1e-5, "accounting": "gaussian"},
        }
        parties[name] = radmm.Party(
            study,
            site,
            rows=parts[name],
            folder=tmp_path,
            send=lambda peer, message, name=name: queues[peer].put((name, message)),  # type: ignore[misc]
        )

    def work(name: str) -> None:
        party = parties[name]
        party.start()
        while not party.done:
            party.receive(*queues[name].get(timeout=60))

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    models = {}
    for name, party in parties.items():
        assert party.done and party.finished
        status = party.status
        assert status.guarantee.protects and status.guarantee.epsilon <= 2.0
        assert status.iteration == status.iterations
        assert status.peers == dict.fromkeys(party.neighbours, "done")
        assert len(status.spent_on_rows) == 1 and status.spent_on_rows[0][0] <= 3.0
        written = party.save(tmp_path / f"{name}-results")
        models[name] = radmm.Model.read(next(path for path in written if path.name == "model.json"))
        party.close()
    weights = [model.weights.tolist() for model in models.values()]
    assert weights[0] == weights[1] == weights[2]
    files = [sorted(tmp_path.glob(f"*-results/{name}")) for name in ("transcript.jsonl", "privacy-statement.json")]
    assert radmm.verify(study, files[0], statements=files[1])


def test_wrong_use_is_named(nodes: Path, tmp_path: Path) -> None:
    study, sites = copied(nodes, tmp_path)
    names = sorted(sites)
    sent: list[tuple[str, bytes]] = []
    with radmm.Party(study, sites[names[0]], send=lambda *message: sent.append(message)) as party:
        party.start()
        with pytest.raises(radmm.LedgerInUse, match="state"):
            radmm.Party(study, sites[names[0]])
        with pytest.raises(ValueError, match="no neighbour"):
            party.receive("nobody", b"")
        peer = party.neighbours[0]
        for wrong in (b"", b"\x07", b"\x01short"):
            # Nobody can end the loop of an honest party by it.
            party.receive(peer, wrong)
            assert any("was ignored, which no party sends" in line for line in party.notices())
        # What looks like a frame and is none is misbehaviour, which is told and does no harm.
        party.receive(peer, b"\x01" + bytes(16) + b"nonsense")
        assert not party.finished
        assert party.status.iteration == 0
    with pytest.raises(radmm.PartyError, match="closed"):
        party.receive(peer, b"\x00")
    with pytest.raises(radmm.StudyError, match="no .*parties"):
        radmm.Party(radmm.Study(STUDY), sites[names[0]])
    with pytest.raises(FileNotFoundError):
        radmm.Party(study, "nowhere.toml")


def test_a_message_that_cannot_be_sent_is_kept(nodes: Path, tmp_path: Path) -> None:
    study, sites = copied(nodes, tmp_path)
    name = sorted(sites)[0]
    broken, sent = True, []

    def send(peer: str, message: bytes) -> None:
        if broken:
            raise ConnectionError("no route")
        sent.append((peer, message))

    party = radmm.Party(study, sites[name], send=send)
    with pytest.raises(ConnectionError, match="no route"):
        party.start()
    broken = False
    party.connect(party.neighbours[-1])
    assert len(sent) >= 2 and sent[0][0] == party.neighbours[0]
    party.close()


def test_messages_can_be_taken_instead_of_sent(nodes: Path, tmp_path: Path) -> None:
    study, sites = copied(nodes, tmp_path)
    with radmm.Party(study, sites[sorted(sites)[0]]) as party:
        party.start()
        taken = party.take_outgoing()
        assert {peer for peer, _ in taken} == set(party.neighbours)
        assert party.take_outgoing() == []
        party.stop()
    assert party.name in repr(party)


def accusations(network: Network) -> list[str]:
    return [line for party in network.parties.values() for line in party.notices() if "misbehaves" in line]


def test_a_restart_blames_no_neighbour_for_messages_that_were_on_their_way(nodes: Path, tmp_path: Path) -> None:
    network = Network(*copied(nodes, tmp_path))
    name = "node-1"
    for _ in range(40):
        network.step(lambda waiting: waiting[0])
    # What node-0 sends waits while the others go on.
    held = ("node-0", name)
    while not any(message[0] == 1 for message in network.queues.get(held, ())):
        network.step(lambda waiting: next((edge for edge in waiting if edge != held), waiting[0]))
    network.parties[name].close()
    network.open(name)
    network.run(lambda waiting: waiting[0])
    assert not accusations(network)
    assert_same_files(nodes, network, tmp_path / "out")
    network.close()


def test_a_message_that_is_delivered_twice_changes_nothing(nodes: Path, tmp_path: Path) -> None:
    """A transport that fails after it has delivered."""
    network = Network(*copied(nodes, tmp_path))
    chance = random.Random(3)
    for party in network.parties.values():
        deliver = party._send
        assert deliver is not None

        def send(peer: str, message: bytes, deliver: Any = deliver) -> None:
            deliver(peer, message)
            if message[0] == 1 and chance.random() < 0.5:
                raise TimeoutError

        party._send = send
    for _ in range(200):
        try:
            network.step(chance.choice)
            if chance.random() < 0.1:
                party = network.parties[chance.choice(sorted(network.parties))]
                party.connect(chance.choice(party.neighbours))
        except TimeoutError:
            continue
    for _ in range(50_000):
        try:
            if not network.step(chance.choice):
                for party in network.parties.values():
                    party._flush()
        except TimeoutError:
            continue
        if all(party.done for party in network.parties.values()):
            break
    assert not accusations(network)
    assert_same_files(nodes, network, tmp_path / "out")
    network.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_cannot_use_the_party_of_its_parent(nodes: Path, tmp_path: Path) -> None:
    network = Network(*copied(nodes, tmp_path))
    party = network.parties["node-0"]
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            party.connect(party.neighbours[0])
        except radmm.PartyError as error:
            os._exit(0 if "fork" in str(error) else 1)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    network.run(lambda waiting: waiting[0])
    network.close()
