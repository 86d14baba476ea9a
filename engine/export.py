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
learned recorded prompts' tokens and log-probabilities. Exit codes: 0, or 2 for bad input.
"""

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
from engine.problem import read_aims, read_direction
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
    if out.suffix not in _WRITERS:
        raise UserError(f"out is {named!r}; it must be a file that ends in .parquet or .jsonl")
    if not arguments.rest:
        raise UserError("give at least one run's folder, such as runs/NAME")
    recordings = [_read(Path(each), options.get("reward")) for each in arguments.rest]
    rows = [row for each in recordings for row in ROWS[form](each)]
    if not rows:
        raise UserError(f"the runs hold nothing for format={form}")
    common = set[str].intersection(*(set(row) for row in rows))
    _WRITERS[out.suffix](out, [{k: v for k, v in row.items() if k in common} for row in rows])
    print(f"{len(rows)} rows in {out}")
    return 0


def _read(folder: Path, reward: str | None) -> Recording:
    settings = config.load_recorded(folder)
    problem = Path(settings.problem)
    direction, (_, target) = read_direction(problem), read_aims(problem)
    history = replay(read_log(folder), direction, name=folder)
    if settings.advisor.enabled or settings.guidance.enabled:
        what = "an advisor" if settings.advisor.enabled else "guidance that was rewritten"
        raise UserError(
            f"{folder} had {what}: answers stand in several prompts for each child, which can't be "
            "exported yet"
        )
    learning = settings.learning
    if reward is not None:
        if reward not in get_args(Kind):
            raise UserError(f"reward is {reward!r}; it must be {' or '.join(get_args(Kind))}")
        learning = replace(learning, reward=cast(Kind, reward))
    return Recording(
        name=str(folder),
        settings=learning,
        direction=direction,
        target=target,
        history=history,
    )


def _write_parquet(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    partial = path.with_name(f".{path.name}.partial")
    try:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), partial)
        partial.replace(path)
    except OSError as error:
        raise UserError(f"{path} can't be written: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


def _write_jsonl(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    write_whole(path, "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows))


_WRITERS: Mapping[str, Callable[[Path, Sequence[Mapping[str, Any]]], None]] = {
    ".parquet": _write_parquet,
    ".jsonl": _write_jsonl,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
