"""Rows of one party that the workers of a Ray cluster hold.

`Rows` takes the place of a table where a `radmm.Party` or a `radmm.PrivateLinearClassifier` is given rows. The workers are inside
the party: they read the files, and reply to the party's process with sums over rows that nothing protects. Noise, ledger and
messages stay in the party's process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from radmm import _radmm
from radmm._workers import Call, Part, WorkerRows, hash_of
from radmm.errors import DataError, RadmmError

try:
    import ray
except ImportError as error:
    raise ImportError('radmm.ray needs Ray: pip install "radmm[ray]"') from error

__all__ = ["Rows"]

#: How often a request is sent anew after Ray gave its worker up, which is beside the retries of Ray itself.
_ATTEMPTS = 5


class Rows(WorkerRows):
    """Rows of one party in files, which workers of a Ray cluster read and hold.

    Sums have the bits of one process, however many workers there are. A worker that is lost is started again by Ray, reads its part
    again, and is sent its request again: nothing is asked twice, and nothing is charged twice. If the files have changed meanwhile,
    that is an error.

    >>> import ray, radmm.ray                                                  # doctest: +SKIP
    >>> ray.init()                                                             # doctest: +SKIP
    >>> rows = radmm.ray.Rows("/data/admissions/*.parquet")                    # doctest: +SKIP
    >>> party = radmm.Party("study.toml", "site.toml", rows=rows)              # doctest: +SKIP

    Parameters
    ----------
    path
        A file, a folder, or a pattern such as ``rows/*.parquet``, as in a site file. All machines of the cluster must have the
        files at this place. Parquet files are read by row groups, others as a whole.
    workers
        The number of workers; by default one for each ``threads`` processors of the cluster. Rows are dealt out in chunks of
        16,384, so that few rows have fewer workers.
    threads
        The number of threads of a worker.
    format
        ``"csv"``, ``"parquet"`` or ``"libsvm"``, where the extension does not tell.
    options
        Options of Ray for each worker, such as ``{"memory": 8 * 2**30}``.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        workers: int | None = None,
        threads: int = 1,
        format: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if workers is None:
            if not ray.is_initialized():
                ray.init()
            workers = max(1, int(ray.cluster_resources().get("CPU", 1)) // max(1, threads))
        super().__init__(path, workers=workers, threads=threads, format=format)
        self._options = dict(options or {})

    def _run(self, calls: Sequence[Call]) -> list[Any]:
        # The files are hashed beside everything else: workers may have taken all processors.
        tasks = [_call.options(num_cpus=int(function is not hash_of)).remote(function, args) for function, args in calls]
        try:
            return [_result(task) for task in tasks]
        except BaseException:
            # What nobody waits for any more would go on reading.
            for task in tasks:
                ray.cancel(task, force=True)
            raise

    def _start(self, parts: Sequence[Part]) -> _Workers:
        return _Workers(parts, {"num_cpus": self.threads, **self._options})


def _run_call(function: Any, args: tuple[Any, ...]) -> Any:
    return function(*args)


class _Holder:
    """A worker, which Ray starts again with the same part when it dies."""

    def __init__(self, part: Part) -> None:
        self._held: _radmm.HeldChunks | None = None
        try:
            self._held = part.hold()
        except RadmmError as error:
            # Raised by what is asked of it: Ray gives a worker up whose constructor raises.
            self._error = error

    def describe(self) -> bytes:
        return self._chunks().describe()

    def reply(self, request: bytes) -> bytes:
        return self._chunks().reply(request)

    def _chunks(self) -> _radmm.HeldChunks:
        if self._held is None:
            raise self._error
        return self._held


#: What runs on the cluster. Ray repeats what a machine that is lost did not finish.
_call: Any = ray.remote(max_retries=-1)(_run_call)
_Worker: Any = ray.remote(max_restarts=-1, max_task_retries=-1)(_Holder)


class _Asked:
    """A request, the worker that it was sent to last, and what will be its reply."""

    def __init__(self, worker: int, method: str, args: tuple[bytes, ...]) -> None:
        self.worker, self.method, self.args = worker, method, args
        self.attempts = 0
        self.actor: Any = None
        self.pending: Any = None
        self.reply: bytes | None = None


class _Workers:
    """The workers of one party or fit."""

    def __init__(self, parts: Sequence[Part], options: Mapping[str, Any]) -> None:
        self._parts = list(parts)
        self._options = dict(options)
        self._is_closed = False
        self._actors = [self._start(worker) for worker in range(len(parts))]

    def describe(self) -> list[bytes]:
        asked = [self._send(_Asked(worker, "describe", ())) for worker in range(len(self._actors))]
        while True:
            replies = self.collect(asked, 1.0)
            if replies is not None:
                return replies

    def submit(self, requests: Sequence[tuple[int, bytes]]) -> list[_Asked]:
        return [self._send(_Asked(worker, "reply", (request,))) for worker, request in requests]

    def collect(self, asked: Sequence[_Asked], seconds: float) -> list[bytes] | None:
        waiting = {one.pending: one for one in asked if one.reply is None}
        if waiting:
            ready, _ = ray.wait(list(waiting), num_returns=len(waiting), timeout=seconds)
            for pending in ready:
                self._take(waiting[pending])
        replies = [one.reply for one in asked if one.reply is not None]
        return replies if len(replies) == len(asked) else None

    def close(self) -> None:
        self._is_closed = True
        for actor in self._actors:
            ray.kill(actor)

    def _start(self, worker: int) -> Any:
        return _Worker.options(**self._options).remote(self._parts[worker])

    def _send(self, one: _Asked) -> _Asked:
        one.actor = self._actors[one.worker]
        one.pending = getattr(one.actor, one.method).remote(*one.args)
        return one

    def _take(self, one: _Asked) -> None:
        """Takes a reply. If Ray has given its worker up, another one is started and sent the same request."""
        try:
            one.reply = ray.get(one.pending)
        except ray.exceptions.RayTaskError as error:
            raise _cause(error, f"worker {one.worker}") from None
        except ray.exceptions.RayError as error:
            if self._is_closed:
                raise DataError("the workers were ended") from None
            one.attempts += 1
            if one.attempts == _ATTEMPTS:
                text = f"worker {one.worker} was lost {_ATTEMPTS} times, the last time because of this: {error}"
                raise DataError(text) from None
            gone = isinstance(error, ray.exceptions.RayActorError) and not isinstance(error, ray.exceptions.ActorUnavailableError)
            if gone and one.actor is self._actors[one.worker]:
                self._actors[one.worker] = self._start(one.worker)
            self._send(one)


def _result(task: Any) -> Any:
    try:
        return ray.get(task)
    except ray.exceptions.RayTaskError as error:
        raise _cause(error, "a worker") from None
    except ray.exceptions.RayError as error:
        raise DataError(f"a worker was lost: {error}") from None


def _cause(error: Any, worker: str) -> Exception:
    """Returns the exception that a worker raised, without the lines of Ray around it."""
    cause = error.cause
    if isinstance(cause, RadmmError):
        return cause
    return DataError(f"{worker} failed: {type(cause).__name__}: {cause}")
