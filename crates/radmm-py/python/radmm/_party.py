"""One party of a network, for people with a transport of their own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any

from radmm import _radmm
from radmm._guarantee import RELATION, Guarantee
from radmm._rows import Rows, table_of
from radmm._study import Study, toml_of
from radmm._workers import HeldRows, Schema, WorkerRows, ended_on_error, load

#: A function that hands a message to the transport: the neighbour's name, and the message.
Send = Callable[[str, bytes], None]


@dataclass(frozen=True)
class PartyStatus:
    """The status of a party. It depends on rows only through what was released."""

    #: The iteration of the party's last value, and the number of iterations.
    iteration: int
    iterations: int
    #: Whether all iterations are done.
    finished: bool
    #: What this study has cost so far.
    guarantee: Guarantee
    #: What all studies on these rows have cost, as (ε, δ), for each limit of the site.
    spent_on_rows: tuple[tuple[float, float], ...]
    #: The largest distance of a neighbour's value from this party's.
    consensus: float
    #: The state of each neighbour: ``away``, ``awaited``, ``heard``, ``disagrees`` or ``done``.
    peers: dict[str, str]


class Party:
    """One party of a study, as a machine: messages in, messages out. It opens no socket and starts no clock.

    The transport delivers the messages of each pair of parties in their order, and tells each party who sent a message: values
    are signed, but not every message is, so the transport authenticates and encrypts. Messages that are lost with a connection
    are sent again after ``connect``; a party that was restarted sees to that itself.

    Everything that leaves is on disk before: the party can be killed at any moment, and goes on when it is made again from the same
    study and site.

    >>> party = radmm.Party("study.toml", "site.toml", send=queue.put)         # doctest: +SKIP
    >>> party.start()                                                          # doctest: +SKIP
    >>> while not party.done:                                                  # doctest: +SKIP
    ...     party.receive(*incoming.get())
    >>> party.save("results")                                                  # doctest: +SKIP
    """

    def __init__(
        self,
        study: Study | str | PathLike[str],
        site: Mapping[str, Any] | str | PathLike[str],
        *,
        send: Send | None = None,
        rows: Rows | WorkerRows | None = None,
        folder: str | PathLike[str] = ".",
        threads: int | None = None,
    ) -> None:
        """Opens the state folder of a site, which is then locked.

        ``site`` is a site file or a dictionary of its form, in which paths are relative to ``folder``. ``rows`` take the place of
        those that it names: a table, or rows that workers hold (`radmm.ray.Rows`). Without ``send``, ``take_outgoing`` returns the
        messages that are to be sent.
        """
        self._study = study if isinstance(study, Study) else Study.read(study)
        if isinstance(site, Mapping):
            text, name, folder = toml_of(site), "the site", Path(folder)
        else:
            path = Path(site)
            text, name, folder = path.read_text(encoding="utf-8"), str(path), path.parent
        native = self._study._native
        self._held: HeldRows | None = None
        if isinstance(rows, WorkerRows):
            self._held = load(rows, Schema(self._study.to_toml(), alone=False))
            with ended_on_error(self._held.workers):
                self._machine = _radmm.PartyMachine(native, text, name, folder, self._held.table, threads)
        else:
            table = None if rows is None else table_of(rows)
            self._machine = _radmm.PartyMachine(native, text, name, folder, table, threads)
        self._send = send
        self._outgoing: deque[tuple[str, bytes]] = deque()
        self._lock = threading.RLock()
        self._sending = threading.Lock()

    @property
    def study(self) -> Study:
        """The study."""
        return self._study

    @property
    def name(self) -> str:
        """The name of the party."""
        return self._machine.name

    @property
    def neighbours(self) -> list[str]:
        """The names of the neighbours."""
        return self._machine.neighbours

    def start(self) -> None:
        """Connects to all neighbours."""
        for peer in self.neighbours:
            self.connect(peer)

    def connect(self, peer: str) -> None:
        """Begins a new link to a neighbour: at the start, and after messages were lost."""
        with self._lock:
            self._machine.connect(peer)
            self._collect_outgoing()
        self._flush()

    def receive(self, peer: str, message: bytes) -> None:
        """Takes in a message of a neighbour, and sends what follows from it.

        An exception that ``send`` raises comes out here. The message is then kept, and sent by the next call first.
        """
        with self._lock:
            try:
                self._machine.receive(peer, message)
            finally:
                self._collect_outgoing()
        self._flush()

    def take_outgoing(self) -> list[tuple[str, bytes]]:
        """Takes the messages that are to be sent, as (neighbour, message), where there is no ``send``."""
        with self._lock:
            taken = list(self._outgoing)
            self._outgoing.clear()
        return taken

    def notices(self) -> list[str]:
        """Takes the lines of the log since the last call."""
        return self._machine.take_notices()

    @property
    def status(self) -> PartyStatus:
        """How far the party is."""
        iteration, iterations, finished, _, _, _, consensus = self._machine.progress()
        (epsilon, delta), site = self._machine.spent()
        return PartyStatus(
            iteration=iteration,
            iterations=iterations,
            finished=finished,
            guarantee=Guarantee(
                epsilon,
                delta,
                RELATION,
                "the total over every message that this party sent in this study so far",
                self._machine.protects,
                self._machine.caveat,
            ),
            spent_on_rows=tuple(site),
            consensus=consensus,
            peers=dict(self._machine.peers()),
        )

    @property
    def finished(self) -> bool:
        """Whether all iterations are done. Neighbours may still need this party."""
        return self._machine.progress()[2]

    @property
    def done(self) -> bool:
        """Whether all iterations are done, and every neighbour has what it needs of this party."""
        return self._machine.progress()[4]

    def save(self, folder: str | PathLike[str] | None = None) -> list[Path]:
        """Writes the signed statement, the transcript and, if the party has finished, the model; returns their paths.

        The default is the folder that the site names.
        """
        return list(self._machine.save(None if folder is None else Path(folder)))

    def stop(self) -> None:
        """Tells the neighbours that this party stops, and closes it. It goes on when it is made again."""
        with self._lock:
            self._machine.stop()
            self._collect_outgoing()
        self._flush()
        self.close()

    def close(self) -> None:
        """Closes the state folder. Everything that was sent is in it. Workers that hold the party's rows end."""
        self._machine.close()
        if self._held is not None:
            self._held.workers.close()
            self._held = None

    def __enter__(self) -> Party:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<radmm.Party {self.name!r} of study {self._study.name!r}>"

    def _collect_outgoing(self) -> None:
        if not self._machine.closed:
            self._outgoing.extend(self._machine.take_outgoing())

    def _flush(self) -> None:
        """Sends what is to be sent, in order. One thread sends at a time; parties can receive meanwhile."""
        if self._send is None:
            return
        while self._outgoing and self._sending.acquire(blocking=False):
            try:
                while (first := self._first_outgoing()) is not None:
                    self._send(*first)
                    # Taken off only now: an exception leaves it where it is.
                    with self._lock:
                        if first is self._first_outgoing():
                            self._outgoing.popleft()
            finally:
                self._sending.release()

    def _first_outgoing(self) -> tuple[str, bytes] | None:
        with self._lock:
            return self._outgoing[0] if self._outgoing else None
