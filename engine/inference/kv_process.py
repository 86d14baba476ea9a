"""``python -m engine.inference.kv_process``: the process in which a run's LMCache server runs.

Covers: starting LMCache's server inside a process that dies with the run, telling the run the
port, keeping the disk tier in bounds, forgetting engines that died, and ending with everything
written that was to be written.
Does not cover who starts it (``kv_server.py``) or reading and writing chunks: LMCache's ``fs``
adapter, which neither bounds the tier nor marks what it finds in memory. (Those of its adapters
that have a bound count only what the same server wrote, and several servers share the tier.)

LMCache's own command is not used because it outlives the process that started it, wants its ports
chosen beforehand, opens a second one for an interface that nobody needs here, and lets its disk
tier grow without bound.
"""

import argparse
import contextlib
import json
import logging
import os
import select
import shutil
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from engine.core import UserError
from engine.evaluation import _native
from engine.inference import compat
from engine.inference.kv_instances import is_alive
from engine.inference.kv_server import SHARED_MEMORY, ServerOptions

_SUFFIX = ".data"  # what the names of the chunks' files end with
_ROOM = 0.1  # share of the disk tier's bound that is freed when it is exceeded
_LOOK_SECONDS = 5.0  # between two looks at the size of the disk tier
_DRAIN_SECONDS = 3.0  # for chunks that are on their way to the disk when the run ends
_log = logging.getLogger(__name__)


def main(options: ServerOptions) -> NoReturn:
    """Serve until the run ends this process, or dies.

    The standard output gets one text: the port, or why the installed LMCache can't be used.
    """
    report = os.dup(1)
    os.dup2(2, 1)  # what else is printed belongs in the log
    ended = _ends()
    _native.die_with_parent(parent=options.parent, signal=signal.SIGTERM)
    try:
        compat.check("lmcache", "server")
    except UserError as error:  # which the run raises
        os.write(report, str(error).encode())
        os._exit(0)
    _server, engine, port = _start(options)
    if options.shared_memory is not None:
        _reserve(SHARED_MEMORY / options.shared_memory)
    os.write(report, str(port).encode())
    os.close(report)
    folder, limit = Path(options.folder), int(options.disk_gb * 2**30)
    used = UsedChunks(folder)
    engine.storage_manager._l1_manager.register_listener(used)
    prune(folder, limit)
    while not select.select([ended], [], [], _LOOK_SECONDS)[0]:
        forget_dead(engine)
        used.mark()
        prune(folder, limit)
    _drain(engine)
    if options.shared_memory is not None:
        (SHARED_MEMORY / options.shared_memory).unlink(missing_ok=True)
    shutil.rmtree(folder / options.scratch, ignore_errors=True)  # the run may be gone
    os._exit(0)  # what is left are threads and memory, and LMCache takes seconds to end them


def _ends() -> socket.socket:
    """Return a socket that can be read from once this process is to end.

    To block the signals would be simpler, but the ``multiprocessing`` module unblocks them.
    """
    ended, end = socket.socketpair()
    end.setblocking(False)
    signal.set_wakeup_fd(end.detach())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return ended


def _start(options: ServerOptions) -> tuple[Any, Any, int]:
    """Start LMCache's server; return it, its engine and its port."""
    from lmcache.v1.distributed import config as storage
    from lmcache.v1.mp_observability import config as observability
    from lmcache.v1.multiprocess import config as server
    from lmcache.v1.multiprocess.server import run_cache_server

    parser = argparse.ArgumentParser()
    server.add_mp_server_args(parser)
    storage.add_storage_manager_args(parser)
    observability.add_observability_args(parser)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    given = parser.parse_args(_arguments(options, port))
    started = run_cache_server(
        mp_config=server.parse_args_to_mp_server_config(given),
        storage_manager_config=storage.parse_args_to_config(given),
        obs_config=observability.parse_args_to_observability_config(given),
        return_engine=True,
        start_prometheus_http_server=False,
    )
    assert started is not None  # it is for return_engine=False only
    return (*started, port)


def _arguments(options: ServerOptions, port: int) -> list[str]:
    disk: dict[str, object] = {
        "type": "fs",
        "base_path": options.folder,
        # A folder of its own for what is being written: servers that write the same chunk at the
        # same time would otherwise share a half-written file.
        "relative_tmp_dir": options.scratch,
    }
    tiers = [disk]
    if options.remote is not None:
        host, remote_port = options.remote
        tiers.append({"type": "resp", "host": host, "port": remote_port})
    arguments = [
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--chunk-size", str(options.chunk_tokens)),
        *("--l1-size-gb", str(options.memory_gb), "--eviction-policy", "LRU"),
        *(part for tier in tiers for part in ("--l2-adapter", json.dumps(tier))),
        "--disable-observability",
        # The engine does not ping (see kv_connector.py), so silence is no sign of death.
        *("--worker-reap-timeout-seconds", "0"),
        *("--kv-event-log-size", "0"),
    ]
    if options.shared_memory is None:
        # Hybrid models have a group of state layers beside the attention layers.
        return [*arguments, "--separate-object-groups"]
    return [
        *arguments,
        *("--supported-transfer-mode", "engine_driven"),
        *("--shm-name", options.shared_memory, "--no-l1-use-lazy"),
    ]


def _reserve(segment: Path) -> None:
    """Take all pages of the memory tier now.

    If shared memory were full later, the engine would be killed for writing to a page of it.

    Raises:
        OSError: there is not enough.
    """
    with segment.open("r+b") as file:
        os.posix_fallocate(file.fileno(), 0, segment.stat().st_size)


def _drain(engine: Any) -> None:
    """Wait, within bounds, until what the memory tier holds is on the disk as well."""
    deadline = time.monotonic() + _DRAIN_SECONDS
    while time.monotonic() < deadline:
        store = engine.storage_manager.report_status()["store_controller"]
        if not store["pending_keys_count"] and not store["in_flight_task_count"]:
            return
        time.sleep(0.02)
    _log.warning("the disk tier did not take everything within %.0f s", _DRAIN_SECONDS)


def forget_dead(engine: Any) -> None:
    """Let go of the engines that have died, whose GPU's memory the server would keep from others.

    LMCache's own way is to wait for an engine that does not ping.
    """
    for module in engine._modules:
        status = module.report_status()
        for kind in ("registered_gpu_ids", "registered_non_cuda_instance_ids"):
            for instance in status.get(kind, ()):
                if not is_alive(instance):
                    module.unregister_kv_cache(instance)


def prune(folder: Path, limit: int) -> None:
    """Keep the chunks in ``folder`` below ``limit`` bytes.

    The chunks whose files were changed, or marked as used, longest ago go first. If another server
    is about to read a chunk that is removed, it only has a miss.
    """
    try:
        stats = ((path, path.stat()) for path in folder.glob(f"*{_SUFFIX}"))
        chunks = sorted((stat.st_mtime, stat.st_size, path) for path, stat in stats)
        excess = sum(size for _, size, _ in chunks) - limit
        if excess <= 0:
            return
        excess += int(limit * _ROOM)
        for _, size, path in chunks:
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            excess -= size
    except FileNotFoundError:
        return  # another server is at it
    except OSError as error:
        _log.warning("the disk tier %s can't be kept in bounds: %s", folder, error)


class UsedChunks:
    """A listener of LMCache's memory tier that marks the files of chunks that are used.

    The start of every prompt is written first and from then on found in memory. Without the marks
    it would be the first chunk to be removed, and nothing behind it in a prompt could be found.
    """

    def __init__(self, folder: Path) -> None:
        """``folder``: of the disk tier."""
        self._folder = folder
        self._keys: set[Any] = set()

    def mark(self) -> None:
        """Mark what was used since the last call."""
        from lmcache.v1.distributed.l2_adapters.fs_l2_adapter import _object_key_to_filename

        keys, self._keys = self._keys, set()
        for key in list(keys):  # a thread may still be adding to it
            with contextlib.suppress(OSError):  # it is not there yet, or any more
                os.utime(self._folder / _object_key_to_filename(key))

    def on_l1_keys_reserved_read(self, keys: list[Any]) -> None:
        """Chunks were found in memory."""
        self._keys.update(keys)

    def _ignore(self, keys: list[Any]) -> None:
        """What else LMCache tells its listeners."""

    on_l1_keys_read_finished = _ignore
    on_l1_keys_reserved_write = _ignore
    on_l1_keys_write_finished = _ignore
    on_l1_keys_finish_write_and_reserve_read = on_l1_keys_reserved_read
    on_l1_keys_deleted_by_manager = _ignore
    on_l1_keys_accessed = _ignore


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    main(ServerOptions(**json.loads(sys.argv[1])))
