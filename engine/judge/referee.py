"""``python -m engine.judge.referee SETUP PROGRAM [CHANNEL]``: evaluate one program.

SETUP is the JSON text of a `Setup`, PROGRAM the program's file, CHANNEL the descriptor of a socket
to the candidate's process. The last line of standard output is the JSON object; the exit code is 0
whenever there is one.
"""

import contextlib
import hashlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from engine.judge import guards
from engine.judge.contracts import evaluate, find_modules
from engine.judge.frames import Channel
from engine.judge.imports import Imports, Notes
from engine.judge.link import Link
from engine.judge.manners import EvaluatorManners
from engine.judge.names import Names
from engine.judge.proxies import Raised
from engine.judge.result import EvaluatorError, Result, traceback_of
from engine.judge.setup import Setup
from engine.judge.turns import Turns
from engine.judge.verdict import judged, one_line

DOUBTS = "doubts"
"""Artifact of a rehearsal: what may be the matter with an evaluator that is split."""
OBJECTS = "objects"
"""Artifact of a rehearsal: names of what the evaluator uses of the program's objects."""
_MOST_SAID = 200  # characters of an exception, so that its place is not cut off


def run(setup_text: str, program: Path, channel: int | None) -> None:
    """Evaluate a program and print the verdict, as the module says; once in a process's life.

    Args:
        setup_text: the JSON text of a `Setup`.
        program: the program's file; where there is none, the one in its folder is taken.
        channel: descriptor of a socket to the candidate's process; None to have the evaluator
            import the program itself.
    """
    answer = os.dup(1)  # whatever the evaluator does to the other one
    setup, program = Setup.from_json(setup_text), _file(program)
    notes = Notes()
    os.environ.update(setup.environment)
    find_modules(setup)
    link = None if channel is None else _split(setup, program, channel, notes)
    verdict = _verdict(setup, program)
    if link is not None:
        _check(verdict, link, notes, setup)
    with contextlib.suppress(OSError, ValueError):  # it may have closed them
        sys.stdout.flush()
        sys.stderr.flush()
    with os.fdopen(answer, "w", encoding="utf-8") as stream:
        stream.write(f"\n{json.dumps(verdict)}\n")


def _file(path: Path) -> Path:
    """Return a program's file; one that is not Python has another suffix."""
    others = [] if path.exists() else sorted(path.parent.iterdir())
    return next(iter(others), path).resolve()


def _split(setup: Setup, program: Path, channel: int, notes: Notes) -> Link:
    """Put the candidate's process in the place of the program."""
    folders = (setup.folder, str(Path(setup.evaluator).parent), *setup.shared)
    roots = tuple(Path(each).resolve() for each in folders)
    manners = EvaluatorManners(roots, shared=setup.neighbours)
    link = Link(Channel(channel), manners, guard=Turns(), allowed=setup.objects)
    if setup.is_rehearsal:
        link.used = Names()
    imports = Imports(
        link=link,
        program=program,
        trusted=(*roots, Path(__file__).resolve().parents[1]),
        neighbours=setup.neighbours,
        is_watched=setup.is_rehearsal,
        is_plain=setup.objects == (),
        notes=notes,
    )
    imports.install()
    text = program.read_text(encoding="utf-8", errors="surrogateescape")
    guards.install(text, notes, is_trusted=imports.is_trusted)
    return link


def _verdict(setup: Setup, program: Path) -> dict[str, Any]:
    text = program.read_bytes()
    is_exempt = hashlib.sha256(text).hexdigest() == setup.exempt
    try:
        result = evaluate(setup, program, is_exempt=is_exempt)
    except EvaluatorError as error:
        result = Result(error=str(error))
    except BaseException as error:  # the evaluator's; SystemExit too is no verdict
        result = Result(error=_said(error, setup), artifacts={"traceback": traceback_of(error)})
    return judged(result, metric=setup.metric)


def _said(error: BaseException, setup: Setup) -> str:
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, Raised):
        return said
    return f"evaluator: {one_line(said)[:_MOST_SAID]}{_place(error, setup)}"


def _place(error: BaseException, setup: Setup) -> str:
    """Return the line of the problem's folder where an exception came from, in brackets."""
    own = f"{setup.folder.rstrip('/')}/"
    steps = [
        (frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    if isinstance(error, SyntaxError):
        steps.append((str(error.filename), error.lineno or 1))
    lines = [(name, line) for name, line in steps if name.startswith(own)]
    return f" ({lines[-1][0].removeprefix(own)}:{lines[-1][1]})" if lines else ""


def _check(verdict: dict[str, Any], link: Link, notes: Notes, setup: Setup) -> None:
    """Refuse the score if the candidate's process is lost, and take in what it has to tell."""
    state: Any = None
    if link.lost is None and setup.is_rehearsal:
        try:
            state = link.ask("state")
        except Exception as error:  # the candidate's side can do and send anything
            link.lost = link.lost or str(error)
    if link.lost is not None:
        verdict.pop("score", None)
        verdict["error"] = one_line(f"the program's process is lost: {link.lost}")
    if not setup.is_rehearsal:
        return
    if isinstance(state, dict) and state.get("changed") is True:
        notes.refusal("the program changes in place what the evaluator gives it")
    verdict["artifacts"][OBJECTS] = str(link.used)
    if link.first_raised:
        notes.refusal(f"apart from the evaluator the program raises {link.first_raised}")
    if notes.reasons:
        verdict["artifacts"][DOUBTS] = "; ".join(notes.reasons)


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None)
    os._exit(0)  # threads that the evaluator left behind would keep the process
