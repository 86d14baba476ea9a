"""Question: none; it makes the pools of experiment ``rq3`` of the runs of ``rq3_pool``.

Method: the best programs of each run, at most ``each`` of one, without copies: all of them are the
pool ``full``; without the best fifth they are ``bottom80``, as TurboEvolve (section 4.3) degrades
its pool.

Usage: python -m bench.experiments.pools [out=runs/experiments] [top=60] [each=12]
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.options import read_options, run_as_command, whole_number
from engine.core import UserError
from engine.pool.runs import export
from engine.store.sqlite import DATABASE

DEFAULTS = {"out": "runs/experiments", "top": "60", "each": "12"}
POOLS = ("full", "bottom80")


def degrade(full: Path, to: Path) -> None:
    """Write the programs of a pool without its best fifth, rounded up; the first are the best.

    Raises:
        UserError: the folder exists.
    """
    programs = sorted(full.glob("*.py"))
    if to.exists():
        raise UserError(f"{to} exists; remove it to make it anew")
    to.mkdir()
    for program in programs[-(-len(programs) // 5) :]:
        shutil.copy(program, to)


def make(runs: Sequence[Path], *, folder: Path, top: int, each: int) -> None:
    """Write both pools of some runs into a folder.

    Raises:
        UserError: there is no run, or a pool exists.
    """
    if not runs:
        raise UserError("there are no runs; make them: python -m bench.experiments name=rq3_pool")
    full, bottom = (folder / name for name in POOLS)
    folder.mkdir(parents=True, exist_ok=True)
    written = export(list(runs), to=full, top=top, each=each)
    degrade(full, bottom)
    sys.stdout.write(f"{full}: {len(written)} programs, {written[0].score!r} to ")
    sys.stdout.write(f"{written[-1].score!r}; {bottom}: {len(list(bottom.glob('*.py')))}\n")


def main(arguments: list[str]) -> None:
    """Make both pools."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    out = Path(options["out"])
    runs = sorted(each.parent for each in (out / "rq3_pool" / "runs").glob(f"*/{DATABASE}"))
    top, each = (whole_number(options, key) for key in ("top", "each"))
    make(runs, folder=out / "rq3" / "pools", top=top, each=each)


if __name__ == "__main__":
    run_as_command(main)
