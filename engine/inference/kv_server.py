"""A run's LMCache server: where the KV of prompts outlives the process that computed it.

Covers: starting a server as a child of the run, or joining one that runs; waiting until it
answers; what vLLM is told of it; closing it with nothing left behind. Does not cover the child
(``kv_process.py``) or what vLLM does when the server fails (``kv_connector.py``). Nothing here
stops a run: what goes wrong is one warning, and the run goes on without.

Every run starts a server of its own. Runs at the same time, and one after the other, share the
disk tier: a chunk of tokens is a file of its own there, named by the model and the digest of all
tokens up to its end, and appears by one rename. A server that several runs joined would die with
the run that had started it, and would add no hits that the disk tier does not give.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.scratch import make_scratch, remove_stale
from engine.settings import CacheSettings

SHARED_MEMORY = Path("/dev/shm")

_SCRATCH = "server-"  # begins the name of a server's own folder in the disk tier's
_SHARED = "lmcache_l1_pool_brood_"  # LMCache wants its segments' names to begin like this
_SHARED_MEMORY_SHARE = 0.8  # of what is free there, at most
_LEAST_GB = 0.05
_START_SECONDS = 60.0
_ANSWER_SECONDS = 2.0
_CLOSE_SECONDS = 6.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class KVTransfer:
    """What vLLM is told of the server.

    Attributes:
        port: where the server listens on 127.0.0.1.
        weights: names the weights, so that no model is given another one's KV.
        pid: of a server that is the run's own; it is killed if the run gives up on it.
    """

    port: int
    weights: str
    pid: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerOptions:
    """What the process of a server of our own is told.

    Attributes:
        parent: process id of the run.
        report: descriptor to write the port to once the server answers.
        folder: of the disk tier.
        scratch: folder in ``folder`` for files that are being written; this server's own.
        memory_gb: memory tier, in GiB.
        disk_gb: disk tier, in GiB.
        chunk_tokens: tokens of one chunk, a multiple of the engine's block size.
        shared_memory: name of the segment that holds the memory tier; None where the engine hands
            over a GPU's memory instead.
    """

    parent: int
    report: int
    folder: str
    scratch: str
    memory_gb: float
    disk_gb: float
    chunk_tokens: int
    shared_memory: str | None

    def encoded(self) -> str:
        """Return the options as one argument of a command line."""
        return json.dumps(asdict(self))


class KVServer:
    """One server, ours or another's; `transfer` once it is needed, `close` at the end."""

    def __init__(self, settings: CacheSettings, *, chunk_tokens: int, on_gpu: bool) -> None:
        """Start the server's process, or note which one to join; does not wait for it.

        Args:
            settings: of the kind ``lmcache``.
            chunk_tokens: tokens that are stored and found together.
            on_gpu: whether the engine's KV lies on a GPU.

        Raises:
            OSError: the folder can't be used, or there is too little shared memory.
        """
        self._settings = settings
        self._chunk_tokens = chunk_tokens
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = self._report = -1
        if settings.server is not None:
            return
        folder = Path(settings.folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in remove_stale(folder, _SCRATCH):  # of servers killed together with their runs
            token = name.removeprefix(_SCRATCH)
            (SHARED_MEMORY / f"{_SHARED}{token}").unlink(missing_ok=True)
        token = secrets.token_hex(4)
        self._shared = None if on_gpu else f"{_SHARED}{token}"
        memory_gb = settings.memory_gb if on_gpu else _fitting(settings.memory_gb)
        self._scratch, self._lock = make_scratch(folder, f"{_SCRATCH}{token}")
        try:
            self._start(memory_gb)
        except BaseException:
            self.close()
            raise

    @property
    def log(self) -> Path:
        """The file that the server's process writes to; removed with a server that ends well."""
        return self._scratch / "log"

    def transfer(self, *, weights: Path) -> KVTransfer:
        """Wait until the server answers; return what vLLM is told of it.

        Raises:
            OSError: it does not, in time or ever.
        """
        if self._settings.server is None:
            assert self._process is not None
            return KVTransfer(port=self._wait(), weights=_identity(weights), pid=self._process.pid)
        port = int(self._settings.server.partition(":")[2])
        self._join(port)
        return KVTransfer(port=port, weights=_identity(weights), pid=None)

    def close(self) -> None:
        """End the server that is ours, with what it stored on disk, and remove its traces."""
        process, self._process = self._process, None
        ended = process is None or _end(process, at_once=self._report >= 0)
        if self._report >= 0:
            os.close(self._report)
            self._report = -1
        if self._lock >= 0:
            if self._shared is not None:
                (SHARED_MEMORY / self._shared).unlink(missing_ok=True)
            if ended:
                shutil.rmtree(self._scratch, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1

    def _start(self, memory_gb: float) -> None:
        self._report, report = os.pipe()
        os.set_blocking(self._report, False)
        options = ServerOptions(
            parent=os.getpid(),
            report=report,
            folder=self._settings.folder,
            scratch=self._scratch.name,
            memory_gb=memory_gb,
            disk_gb=self._settings.disk_gb,
            chunk_tokens=self._chunk_tokens,
            shared_memory=self._shared,
        )
        try:
            with self.log.open("wb") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "engine.inference.kv_process", options.encoded()],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(report, self._lock),
                    env={**os.environ, **_ENVIRONMENT},
                    start_new_session=True,  # Ctrl-C is the run's, which ends its server itself
                )
        finally:
            os.close(report)

    def _wait(self) -> int:
        """Return the port of the process that was started, once it has told it."""
        if not select.select([self._report], [], [], _START_SECONDS)[0]:
            raise OSError(f"it did not start within {_START_SECONDS:.0f} s")
        told = os.read(self._report, 32)
        os.close(self._report)
        self._report = -1
        if not told.endswith(b"\n"):
            raise OSError(f"it did not start; see {self.log}")
        return int(told)

    def _join(self, port: int) -> None:
        import zmq
        from lmcache.v1.multiprocess.transport.factory import RequestClientFactory

        context = zmq.Context()
        context.setsockopt(zmq.LINGER, 0)
        client = RequestClientFactory.create(f"tcp://127.0.0.1:{port}", context=context)
        try:
            chunk: int = client.get_chunk_size().result(timeout=_ANSWER_SECONDS)
        except TimeoutError as error:
            raise OSError(f"nothing answers at 127.0.0.1:{port}") from error
        finally:
            client.close()
            context.term()
        if chunk % self._chunk_tokens:
            raise OSError(
                f"its chunks of {chunk} tokens are no multiple of {self._chunk_tokens}; start it "
                f"with --chunk-size {self._chunk_tokens}"
            )


_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "LMCACHE_TRACK_USAGE": "false",
    "DO_NOT_TRACK": "1",
    "LMCACHE_LOG_LEVEL": "WARNING",
    "LMCACHE_DISABLE_BANNER": "1",
}


@contextlib.contextmanager
def kv_server(
    settings: CacheSettings, *, chunk_tokens: int, on_gpu: bool
) -> Iterator[KVServer | None]:
    """Hold a server for the length of a ``with`` block; None if none is wanted or can be had.

    The arguments are those of `KVServer`.
    """
    server = None
    if settings.kind == "lmcache":
        try:
            server = KVServer(settings, chunk_tokens=chunk_tokens, on_gpu=on_gpu)
        except OSError as error:
            _go_without(error)
    try:
        yield server
    finally:
        if server is not None:
            server.close()


def kv_transfer(server: KVServer | None, *, weights: Path) -> KVTransfer | None:
    """Return what vLLM is told of ``server``; None, with a warning, if it does not answer."""
    if server is None:
        return None
    try:
        return server.transfer(weights=weights)
    except OSError as error:
        _go_without(error)
        return None


def _go_without(error: Exception) -> None:
    _log.warning("no LMCache server, so this run starts cold and keeps no KV: %s", error)


def _fitting(memory_gb: float) -> float:
    """Return the memory tier's size, in GiB, or what shared memory has room for."""
    free_gb = shutil.disk_usage(SHARED_MEMORY).free / 2**30
    fitting = min(memory_gb, free_gb * _SHARED_MEMORY_SHARE)
    if fitting < _LEAST_GB:
        raise OSError(f"{SHARED_MEMORY} has only {free_gb:.2f} GiB free")
    return fitting


def _identity(weights: Path) -> str:
    """Return a name for a folder of weights that other weights do not have.

    What a file holds is told by its name, size and time of change, as reading tens of gigabytes
    would take longer than what is saved; the configuration, which is small, by its contents.
    """
    digest = hashlib.sha256((weights / "config.json").read_bytes())
    for path in sorted(weights.iterdir()):
        stat = path.stat()
        digest.update(f"{path.name}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def _end(process: subprocess.Popen[bytes], *, at_once: bool) -> bool:
    """End a server's process and wait for it; return whether its log tells nothing of interest."""
    if at_once and process.poll() is None:  # it is still starting, and heeds no other signal
        process.kill()
        process.wait()
        return True
    process.terminate()
    process.send_signal(signal.SIGCONT)
    try:
        return process.wait(timeout=_CLOSE_SECONDS) == 0
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
