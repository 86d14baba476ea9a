"""A process that uses a model with an LMCache server and says what happened, as JSON.

Run by ``kv_sessions.py`` in processes of their own: a second one is the point of what is tested,
and a server that failed is given up for good.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine import config
from engine.core import Generation
from engine.inference import (
    LanguageModel,
    Sampling,
    chunk_tokens,
    find_weights,
    in_its_format,
    is_cpu_build,
    kv_server,
    kv_transfer,
    prepare,
)

PARENT = "\n".join(f"def step_{n}(x):\n    return x * {n} + {n * n}\n" for n in range(33))
OTHERS = ("Ada", "Ben", "Cleo", "Dan")


class Warnings(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def ask(model: LanguageModel, text: str, *, fault: tuple[int, int] | None = None) -> dict[str, Any]:
    """Let the model write four children; in the middle, send a signal to a process."""
    ids = model.encode(text)
    endless = tuple(model.encode("<|im_end|>") + model.encode("<|endoftext|>"))
    fan = model.fanout(
        token_ids=ids,
        sampling=[
            Sampling(temperature=0.8, seed=seed, stop=(), max_tokens=12, banned=endless)
            for seed in range(4)
        ],
    )
    children: list[Generation] = []
    steps = 0
    while fan.indices:
        model.step()
        children += fan.take()
        steps += 1
        if steps == 3 and fault is not None:
            os.kill(*fault)
    children.sort(key=lambda child: child.index)
    return {
        "prompt_tokens": len(ids),
        "cached": [child.cached_prompt_tokens for child in children],
        "generated": [child.generated_tokens for child in children],
        "reasons": [child.finish_reason for child in children],
        "texts": [child.text for child in children],
    }


def be_patient(seconds: float) -> None:
    """Wait longer for a server than a run does: one that a loaded machine makes slow is no failure.

    Args:
        seconds: for an answer.
    """
    from engine.inference import kv_connector  # imports vLLM, which has to be prepared

    server = sys.modules["engine.inference.kv_server"]  # the package has a function of that name
    vars(server).update(_START_SECONDS=600.0, _CLOSE_SECONDS=60.0)
    vars(kv_connector).update(START_SECONDS=120.0, ANSWER_SECONDS=seconds)


def main(
    *,
    folder: str,
    fault: int = 0,
    victim: int = 0,
    server: str | None = None,
    remote: str | None = None,
    dtype: str = "auto",
    memory_gb: float = 0.5,
    reload: bool = False,
    only_prefill: bool = False,
    lines: int = 8,
) -> dict[str, Any]:
    """Ask for a known prompt, then for others.

    Args:
        folder: of the disk tier.
        fault: signal that is sent to a process in between; 0 for none.
        victim: that process; 0 for the server.
        server: ``cache.server``.
        remote: ``cache.remote``.
        dtype: ``model.dtype``; "auto" is the one that this CPU computes fastest in.
        memory_gb: of the server's memory tier; the known prompt needs about 0.016 of it, in float32
            twice that.
        reload: whether the engine is loaded again before the others are asked for, and the known
            prompt is asked for once more; and once again after the fault.
        only_prefill: whether to compute the known prompt, and ask for nothing.
        lines: of each other prompt, of twelve tokens.
    """
    warnings = Warnings()
    logging.getLogger("engine").addHandler(warnings)
    logging.getLogger("engine").propagate = False
    arguments = ["cache=lmcache", f"cache.folder={folder}"]
    settings = config.resolve([*arguments, "model.max_model_len=2048", f"model.dtype={dtype}"])
    cache = replace(settings.cache, server=server, remote=remote, memory_gb=memory_gb)
    prepare(threads=None, kv_cache_gb=1)
    be_patient(3.0 if fault else 60.0)
    weights = find_weights(settings.model)
    wanted = in_its_format(settings.model, folder=weights)
    tokens = chunk_tokens(settings=wanted, folder=weights)
    others = [
        "\n".join(f"{name} has {n} sheep and {n + 3} goats." for n in range(lines))
        for name in OTHERS
    ]
    with kv_server(cache, chunk_tokens=tokens, on_gpu=not is_cpu_build()) as own:
        transfer = kv_transfer(own, weights=weights)
        model = LanguageModel(settings=wanted, folder=weights, seed=0, kv_transfer=transfer)
        if only_prefill:
            is_kept = model.prefill(model.encode(PARENT))
            os._exit(0 if is_kept and not warnings.lines else 1)  # it has to be there by now
        answers = [ask(model, PARENT)]
        if reload:
            model.reload()
            answers += [ask(model, PARENT)]
        signalled = None
        if fault:
            assert transfer is not None and transfer.pid is not None
            signalled = (victim or transfer.pid, fault)
        answers += [ask(model, others[0], fault=signalled)]
        if reload:
            model.reload()
        answers += [ask(model, text) for text in others[1:]]
        model.close()
    return {
        "answers": answers,
        "warnings": warnings.lines,
        "left": sorted(path.name for path in Path(folder).iterdir() if path.suffix != ".data"),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(**json.loads(sys.argv[1]))) + "\n")
