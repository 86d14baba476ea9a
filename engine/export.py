"""``python -m engine.export RUN... format=NAME out=FILE``: what runs recorded, as data to train on.

    python -m engine.export runs/A runs/B format=groups out=groups.parquet
    python -m engine.export runs/A format=dpo out=pairs.jsonl

format=groups   a row for each call: its prompt, and lists with an entry for each child (answer,
                tokens, log-probabilities, temperature, reward, score, failure, refusal)
       sft      a row for each new child with a score: prompt and answer, as text and as the exact
                tokens (``input_ids``, ``labels``) where all the runs recorded them
       dpo      a row for each call with two different answers whose rewards differ: the best and
                the worst one
       kto      a row for each answer, and whether its child is new and has a score; none for
                copies of such a child
out=FILE        ends in .parquet or .jsonl; written whole or not at all
reward=KIND     rank or target, as learning.reward; the runs' own setting by default

docs/learning.md has the columns. The GRPO trainers of TRL and verl sample answers themselves and
read prompts alone; ``format=groups`` is for those who train on recorded groups. Only runs that
learned recorded prompts' tokens and log-probabilities. Where the problem is gone, its direction is
read in the run's ``summary.json``. Exit codes: 0, or 2 for bad input.
"""

import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

import pyarrow
import pyarrow.parquet

from engine import config
from engine.arguments import Arguments, execute
from engine.core import UserError
from engine.durable import write_whole
from engine.learning.records import ROWS, Recording
from engine.learning.rewards import Kind
from engine.problem import read_aims
from engine.settings import LearningSettings, RunSettings
from engine.store import read_log, replay


def main(arguments: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    return execute(_export, arguments, keys=("format", "out", "reward"), usage=__doc__ or "")


def _export(arguments: Arguments) -> int:
    options = arguments.options
    form, named = options.get("format", ""), options.get("out", "")
    out = Path(named)
    if form not in ROWS:
        raise UserError(f"format is {form!r}; it must be one of {', '.join(ROWS)}")
    if out.suffix not in _FILES:
        raise UserError(f"out is {named!r}; it must be a file that ends in .parquet or .jsonl")
    folders = [Path(each) for each in arguments.rest]
    config.check_folders(folders)
    recordings = [_read(folder, options.get("reward")) for folder in folders]
    rows = [row for each in recordings for row in ROWS[form](each)]
    if not rows:
        raise UserError(f"the runs hold nothing for format={form}")
    common = set[str].intersection(*(set(row) for row in rows))
    content = _FILES[out.suffix]([{k: v for k, v in row.items() if k in common} for row in rows])
    write_whole(out, content)
    print(f"{len(rows)} rows in {out}")
    return 0


def _read(folder: Path, reward: str | None) -> Recording:
    settings = config.load_recorded(folder)
    direction, _ = config.recorded_scores(settings, folder=folder)
    history = replay(read_log(folder), direction, name=folder)
    if settings.advisor.enabled or settings.guidance.enabled:
        what = "an advisor" if settings.advisor.enabled else "guidance that was rewritten"
        raise UserError(
            f"{folder} had {what}: answers stand in several prompts for each child, which can't be "
            "exported yet"
        )
    return Recording(
        name=str(folder),
        settings=_rewarding(settings, reward, folder=folder),
        direction=direction,
        target=read_aims(Path(settings.problem))[1],
        history=history,
    )


def _rewarding(settings: RunSettings, reward: str | None, *, folder: Path) -> LearningSettings:
    """Return how a run's children are rewarded: as it did, or as the command line says.

    Raises:
        UserError: there is no such reward, or the problem with its target is gone.
    """
    learning, problem = settings.learning, Path(settings.problem)
    if reward is not None:
        if reward not in get_args(Kind):
            raise UserError(f"reward is {reward!r}; it must be {' or '.join(get_args(Kind))}")
        learning = replace(learning, reward=cast(Kind, reward))
    if learning.reward == "target" and not problem.exists():
        raise UserError(
            f"{problem}: the problem's folder is gone, and with it the target that {folder} is to "
            "be rewarded by; put it back, or give reward=rank"
        )
    return learning


def _parquet(rows: Sequence[Mapping[str, Any]]) -> bytes:
    content = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), content)
    return content.getvalue()


def _jsonl(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode()


_FILES: Mapping[str, Callable[[Sequence[Mapping[str, Any]]], bytes]] = {
    ".parquet": _parquet,
    ".jsonl": _jsonl,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
