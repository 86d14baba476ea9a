"""vLLM's own HTTP server on this machine, for what talks to a model over HTTP.

Covers: starting ``python -m vllm.entrypoints.openai.api_server`` on 127.0.0.1 with the limits that
the engine has for the same model, and what vLLM counts there. Does not cover the requests.

The ``vllm`` command is not used, as it does not start with the package for CPUs. On a CPU two
things differ from vLLM's defaults: prompts are not prefilled in parts, because a seeded request
whose prefill is split crashes it, and blocks of the prefix cache have 32 tokens, as the engine's.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from bench.guard import Guarded
from engine.core import UserError
from engine.inference import is_cpu_build, most_at_once
from engine.settings import ModelSettings

MODEL = "model"
"""The name under which the server knows its one model."""

THREADS = ("auto", "all")
_BLOCK_SIZE = 32
_START_SECONDS = 600.0
_LOOK_SECONDS = 0.1
# This machine's own server is never reached through a proxy.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, kw_only=True, slots=True)
class Counters:
    """What vLLM's metrics counted since the server began.

    Attributes:
        completions: requests that were answered in full.
        abandoned: requests whose client gave up, as OpenEvolve does after 60 s, and asks again.
        refused: requests that got an error for an answer, such as a prompt that is too long.
        prompt_tokens: of the answered requests.
        generated_tokens: tokens sampled.
        queried_tokens: prompt tokens looked up in the prefix cache.
        cached_tokens: those of them that were found there.
        seconds: from a request's arrival to its last token, summed over the answered requests;
            requests that overlap count in full each.
    """

    completions: float
    abandoned: float
    refused: float
    prompt_tokens: float
    generated_tokens: float
    queried_tokens: float
    cached_tokens: float
    seconds: float

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the counters in ``text``, the server's answer to ``/metrics``."""
        from prometheus_client.parser import text_string_to_metric_families

        samples = [
            each for family in text_string_to_metric_families(text) for each in family.samples
        ]

        def total(name: str, **labels: str) -> float:
            return sum(
                each.value
                for each in samples
                if each.name == name and labels.items() <= each.labels.items()
            )

        chat = {"handler": "/v1/chat/completions"}
        return cls(
            completions=sum(
                total("vllm:request_success_total", finished_reason=reason)
                for reason in ("stop", "length")
            ),
            abandoned=total("vllm:request_success_total", finished_reason="abort"),
            refused=sum(
                total("http_requests_total", status=status, **chat) for status in ("4xx", "5xx")
            ),
            prompt_tokens=total("vllm:prompt_tokens_total"),
            generated_tokens=total("vllm:generation_tokens_total"),
            queried_tokens=total("vllm:prefix_cache_queries_total"),
            cached_tokens=total("vllm:prefix_cache_hits_total"),
            seconds=total("vllm:e2e_request_latency_seconds_sum"),
        )

    def since(self, before: Counters) -> Counters:
        """Return what was counted after ``before``."""
        differences = {
            each.name: getattr(self, each.name) - getattr(before, each.name)
            for each in fields(self)
        }
        return Counters(**differences)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelServer:
    """A server that is ready; ``url`` is the base of its OpenAI-compatible interface."""

    address: str

    @property
    def url(self) -> str:
        """What clients of OpenAI's interface call the base URL."""
        return f"{self.address}/v1"

    def counters(self) -> Counters:
        """Return what vLLM counted so far."""
        return Counters.read(_get(f"{self.address}/metrics"))

    def complete(self, prompt: str, *, max_tokens: int) -> str:
        """Return the model's answer to ``prompt``."""
        message = {"role": "user", "content": prompt}
        body = {"model": MODEL, "messages": [message], "max_tokens": max_tokens, "seed": 0}
        request = urllib.request.Request(
            f"{self.url}/chat/completions",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        answer: dict[str, Any] = json.loads(_get(request))
        return str(answer["choices"][0]["message"]["content"])


@contextmanager
def serve(
    *, settings: ModelSettings, weights: Path, threads: str, scratch: Path
) -> Iterator[ModelServer]:
    """Start a server, wait until it has answered once, and end it afterwards.

    Args:
        settings: the limits of the engine, which become the server's.
        weights: the model's folder.
        threads: on a CPU, ``auto`` for vLLM's own choice, a core for each thread and one for the
            scheduler, or ``all`` for a thread on each core and the scheduler in the first of them.
        scratch: folder for its log.

    Raises:
        UserError: it does not start.
    """
    address = f"http://127.0.0.1:{_free_port()}"
    command, environment = _command(settings, weights, address, threads)
    log = scratch / "server.log"
    with Guarded(command, environment=environment, cwd=scratch, log=log) as process:
        _wait(address, process)
        server = ModelServer(address=address)
        server.complete("Say hello.", max_tokens=4)  # what is loaded at the first request, is now
        yield server


def _command(
    settings: ModelSettings, weights: Path, address: str, threads: str
) -> tuple[list[str], dict[str, str]]:
    """Return the command that serves at ``address``, and what its environment has besides."""
    command = [
        *(sys.executable, "-m", "vllm.entrypoints.openai.api_server"),
        *("--host", "127.0.0.1", "--port", address.rpartition(":")[2]),
        *("--model", str(weights), "--served-model-name", MODEL),
        *("--dtype", settings.dtype, "--max-model-len", str(settings.max_model_len)),
        *("--max-num-seqs", str(most_at_once(settings)), "--enable-prefix-caching"),
    ]
    environment = {
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    if not is_cpu_build():
        return [
            *command,
            *("--gpu-memory-utilization", str(settings.gpu_memory_utilization)),
        ], environment
    command += [
        *("--enforce-eager", "--block-size", str(_BLOCK_SIZE)),
        *("--no-enable-chunked-prefill", "--max-num-batched-tokens"),
        str(max(settings.max_model_len, 2048)),
    ]
    environment |= {
        "VLLM_CPU_KVCACHE_SPACE": str(settings.kv_cache_gb),
        "TORCHDYNAMO_DISABLE": "1",
    }
    if threads == "all":
        # Else vLLM puts the model into a process of its own, beside a scheduler that never sleeps.
        command += ["--distributed-executor-backend", "uni"]
        environment |= {
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "OMP_NUM_THREADS": str(len(os.sched_getaffinity(0))),
        }
    return command, environment


def _wait(address: str, process: Guarded) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.exit_code is None:
        try:
            _get(f"{address}/health")
            return
        except OSError:  # nobody listens yet
            time.sleep(_LOOK_SECONDS)
    raise UserError(f"vLLM's server does not start: {process.said()}")


def _get(request: str | urllib.request.Request) -> str:
    with _OPENER.open(request, timeout=_START_SECONDS) as answer:
        return str(answer.read().decode())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
