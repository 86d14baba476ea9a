"""Engines that died are forgotten by the server that they had registered at."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

from engine.inference.kv_instances import is_alive, new_instance

SERVER = """
import json, os, sys
from engine.inference.kv_process import _start, forget_dead
from engine.inference.kv_server import ServerOptions
from lmcache.v1.multiprocess.custom_types import RegisterEngineDrivenContextPayload as Payload

given = json.loads(sys.argv[1])
_, engine, _ = _start(ServerOptions(
    parent=os.getpid(), folder=given["folder"], scratch="scratch", memory_gb=0.05, disk_gb=1.0,
    chunk_tokens=64, shared_memory=given["segment"], remote=None,
))
(module,) = (each for each in engine._modules if type(each).__name__.startswith("EngineDriven"))
for instance in given["instances"]:
    module.register_kv_cache_engine_driven_context(Payload(
        instance_id=instance, model_name="model", world_size=1, block_size=32, num_layers=2,
        hidden_dim_size=64, dtype_str="bfloat16", use_mla=False,
    ))
forget_dead(engine)
print(json.dumps(module.report_status()["registered_non_cuda_instance_ids"]), flush=True)
os._exit(0)
"""


def test_names_differ_and_name_this_process() -> None:
    names = {new_instance() for _ in range(100)}
    assert len(names) == 100 and all(map(is_alive, names))
    assert all(0 < name < 1 << 63 for name in names)


def test_a_server_forgets_an_engine_whose_process_died_and_no_other(tmp_path: Path) -> None:
    code = "from engine.inference.kv_instances import new_instance; print(new_instance())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    alive, dead = new_instance(), int(run.stdout)
    assert is_alive(alive) and not is_alive(dead)
    segment = f"lmcache_l1_pool_brood_{secrets.token_hex(4)}"
    given = {"folder": str(tmp_path), "segment": segment, "instances": [alive, dead]}
    environment = {**os.environ, "LMCACHE_TRACK_USAGE": "false", "LMCACHE_LOG_LEVEL": "WARNING"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", SERVER, json.dumps(given)],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
    finally:
        (Path("/dev/shm") / segment).unlink(missing_ok=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [alive]
