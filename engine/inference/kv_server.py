"""A run's LMCache server: where the KV of prompts outlives the process that computed it.

Covers: starting a server as a child of the run, or joining one that runs; waiting until it
answers; what vLLM is told of it; closing it with nothing left behind. Does not cover the child
(``kv_process.py``) or what vLLM does when the server fails (``kv_connector.py``). A server that
fails stops no run: it is one warning, and the run goes on without.

Every run starts a server of its own, or one on each machine of a cluster, for all workers there
(``engine.cluster.kv.node_cache``). Runs at the same time, and one after the other, share the disk
tier: a chunk of tokens is a file of its own there, named by the model and the digest of all tokens
up to its end, and appears by one rename. A server for several runs would die with the run that had
started it, and would bring no more hits than the disk tier does. Machines share the remote tier.
"""

import contextlib
import json
import logging
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.core import UserError
from engine.inference.environment import NO_TELEMETRY
from engine.inference.kv_remote import reached
from engine.inference.weights import identity
from engine.memory import available_bytes
from engine.scratch import make_scratch, remove_stale
from engine.settings import CacheSettings

SHARED_MEMORY = Path("/dev/shm")

_SCRATCH = "server-"  # begins the name of a server's own folder in the disk tier's
_SHARED = "lmcache_l1_pool_brood_"  # LMCache wants its segments' names to begin like this
_SHARED_MEMORY_SHARE = 0.8  # of what is free there, at most
_LEAST_GB = 0.05
_START_SECONDS = 60.0
_START_SECONDS_EACH_GB = 2.0  # memory beside a GPU is pinned page by page
_MEMORY_SHARE = 0.5  # of what is free in the machine, at most
_ANSWER_SECONDS = 2.0
_CLOSE_SECONDS = 6.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class KVTransfer:
    """What vLLM is told of the server.

    Attributes:
        port: where the server listens on 127.0.0.1.
        weights: names the weights, so that no model is given another one's KV.
        pid: of a server that is killed if the run gives up on it; None to leave it alone.
    """

    port: int
    weights: str
    pid: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerOptions:
    """What the process of a server of our own is told.

    Attributes:
        parent: process id of the run.
        folder: of the disk tier.
        scratch: folder in ``folder`` for files that are being written; this server's own.
        memory_gb: memory tier, in GiB.
        disk_gb: disk tier, in GiB.
        chunk_tokens: tokens of one chunk, a multiple of the engine's block size.
        shared_memory: name of the segment that holds the memory tier; None where the engine hands
            over a GPU's memory instead.
        remote: host and port of a Redis or Valkey server; None for no remote tier.
    """

    parent: int
    folder: str
    scratch: str
    memory_gb: float
    disk_gb: float
    chunk_tokens: int
    shared_memory: str | None
    remote: tuple[str, int] | None


class KVServer:
    """One server, ours or another's, as `kv_server` holds it."""

    def __init__(
        self,
        settings: CacheSettings,
        *,
        chunk_tokens: int,
        on_gpu: bool,
        resources: contextlib.ExitStack,
    ) -> None:
        """Start the server's process, or note which one to join; does not wait for it.

        Args:
            settings: of the kind ``lmcache``.
            chunk_tokens: tokens that are stored and found together.
            on_gpu: whether the engine's KV lies on a GPU.
            resources: takes what ends the server, with what it stored on disk, and its traces.

        Raises:
            OSError: the folder can't be used, or there is too little shared memory.
        """
        self._settings = settings
        if settings.server is None:
            self._start(chunk_tokens, on_gpu, resources)

    @property
    def log(self) -> Path:
        """The file that the server's process writes to; removed with a server that ends well."""
        return self._scratch / "log"

    @property
    def is_running(self) -> bool:
        """Whether the process that was started still runs."""
        return self._process.poll() is None

    def transfer(self, *, weights: Path) -> KVTransfer:
        """Wait until the server answers; return what vLLM is told of it.

        Raises:
            OSError: it does not, in time or ever.
            UserError: the installed LMCache is one that the engine can't use.
        """
        if self._settings.server is None:
            return KVTransfer(port=self._wait(), weights=identity(weights), pid=self._process.pid)
        port = int(self._settings.server.partition(":")[2])
        socket.create_connection(("127.0.0.1", port), timeout=_ANSWER_SECONDS).close()
        return KVTransfer(port=port, weights=identity(weights), pid=self._settings.server_pid)

    def _start(self, chunk_tokens: int, on_gpu: bool, resources: contextlib.ExitStack) -> None:
        folder = Path(self._settings.folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in remove_stale(folder, _SCRATCH):  # of servers killed together with their runs
            _segment(name.removeprefix(_SCRATCH)).unlink(missing_ok=True)
        token = secrets.token_hex(4)
        segment, memory_gb = _segment(token), self._settings.memory_gb
        options = ServerOptions(
            parent=os.getpid(),
            folder=self._settings.folder,
            scratch=f"{_SCRATCH}{token}",
            memory_gb=_pinnable(memory_gb) if on_gpu else _fitting(memory_gb),
            disk_gb=self._settings.disk_gb,
            chunk_tokens=chunk_tokens,
            shared_memory=None if on_gpu else segment.name,
            remote=reached(self._settings.remote),
        )
        self._start_seconds = start_seconds(options.memory_gb)
        self._scratch, lock = make_scratch(folder, options.scratch)
        resources.callback(os.close, lock)
        self._is_starting = self._ended_well = True
        resources.callback(self._remove, segment)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "engine.inference.kv_process"),
                    json.dumps(asdict(options)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,  # for the port alone
                stderr=log,
                pass_fds=(lock,),
                env={
                    **os.environ,
                    **NO_TELEMETRY,
                    "OMP_NUM_THREADS": "1",
                    "LMCACHE_LOG_LEVEL": "WARNING",
                },
                start_new_session=True,  # Ctrl-C is the run's, which ends its server itself
            )
        resources.enter_context(self._process)  # waits for it, and closes the pipe
        resources.callback(self._end)

    def _end(self) -> None:
        process = self._process
        if self._is_starting and process.poll() is None:  # it heeds no other signal yet
            process.kill()
            process.wait()
            return
        process.terminate()
        process.send_signal(signal.SIGCONT)
        try:
            self._ended_well = process.wait(timeout=_CLOSE_SECONDS) == 0
        except subprocess.TimeoutExpired:
            process.kill()
            self._ended_well = False

    def _remove(self, segment: Path) -> None:
        """Remove what an ended process may have left, but not a log that may be of interest."""
        segment.unlink(missing_ok=True)
        if self._ended_well:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _wait(self) -> int:
        """Return the port of the process that was started, once it has told it."""
        report = self._process.stdout
        assert report is not None
        if not select.select([report], [], [], self._start_seconds)[0]:
            raise OSError(
                f"it did not start within {self._start_seconds:.0f} s; lower cache.memory_gb"
            )
        self._is_starting = False
        told = os.read(report.fileno(), select.PIPE_BUF).decode()
        if not told:
            raise OSError(f"it did not start; see {self.log}")
        if not told.isdecimal():
            raise UserError(told)
        return int(told)


@contextlib.contextmanager
def kv_server(
    settings: CacheSettings, *, chunk_tokens: int, on_gpu: bool
) -> Iterator[KVServer | None]:
    """Hold a server for the length of a ``with`` block; None, with a warning, if it can't be had.

    The arguments are those of `KVServer`.
    """
    with contextlib.ExitStack() as resources:
        server = None
        try:
            server = KVServer(
                settings, chunk_tokens=chunk_tokens, on_gpu=on_gpu, resources=resources
            )
        except OSError as error:
            _go_without(error)
        yield server


def kv_transfer(server: KVServer | None, *, weights: Path) -> KVTransfer | None:
    """Return what vLLM is told of ``server``; None, with a warning, if it does not answer.

    Raises:
        UserError: the installed LMCache is one that the engine can't use.
    """
    if server is None:
        return None
    try:
        return server.transfer(weights=weights)
    except OSError as error:
        _go_without(error)
        return None


def start_seconds(memory_gb: float) -> float:
    """Return how long a server with a memory tier of this size may take to start."""
    return _START_SECONDS + _START_SECONDS_EACH_GB * memory_gb


def _go_without(error: Exception) -> None:
    _log.warning("no LMCache server, so this run starts cold and keeps no KV: %s", error)


def _pinnable(memory_gb: float) -> float:
    """Return the memory tier's size beside a GPU, in GiB, or what the machine has room for."""
    return max(_LEAST_GB, min(memory_gb, available_bytes() / 2**30 * _MEMORY_SHARE))


def _fitting(memory_gb: float) -> float:
    """Return the memory tier's size, in GiB, or what shared memory has room for."""
    free_gb = shutil.disk_usage(SHARED_MEMORY).free / 2**30
    fitting = min(memory_gb, free_gb * _SHARED_MEMORY_SHARE)
    if fitting < _LEAST_GB:
        raise OSError(f"{SHARED_MEMORY} has only {free_gb:.2f} GiB free")
    return fitting


def _segment(token: str) -> Path:
    """Return the shared memory of the server that a token names."""
    return SHARED_MEMORY / f"{_SHARED}{token}"
