"""A candidate's own process, from behind the walls to its end: read the cases, run, answer.

This runs in the child process that the zygote forks for a candidate, beside the candidate's own
code. So nothing here is trusted by anyone: the result is a tag and bytes (see ``wire``), which
the trusted process checks again.

Does not cover: the walls, which stand before this begins (``native/walls.cpp``), and when the
process is killed (``native/zygote.cpp``).
"""

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from types import ModuleType, TracebackType
from typing import Any, NoReturn

from engine.core import Case, Failure
from engine.core.bundle import files_of
from engine.evaluation import wire
from engine.evaluation.contract import ContractError, pack
from engine.evaluation.sources import FILENAME, is_source, load_files, name_of, run_source
from engine.evaluation.wire import RAISED, RAISED_BYTES, RETURNED

EXIT_INTERNAL = 70
_INPUT, _RESULT, _DONE = 3, 4, 5  # as in native/zygote.hpp
_TRACEBACK_FRAMES = 6
_TEXT_CHARACTERS = 2000


class _NoEntryPoint(Exception):
    """The program does not define the function that its problem asks for."""


def run_child(program: bytes, entry_point: str, cases: Sequence[Case] | None) -> NoReturn:
    """Run a program, write its result, say so, and never return.

    Args:
        program: its text, in UTF-8.
        entry_point: the function that it defines.
        cases: the calls to make; None to read them from this process's own input.
    """
    try:
        room = wire.map_result(_RESULT)  # now: a program may use up memory and descriptors
        if cases is None:
            cases = wire.decode_cases(wire.read_input(_INPUT))
        os.close(_INPUT)  # all zygotes have this file, and reading leaves a time on it
        result = run(program.decode(errors="surrogatepass"), entry_point, cases)
        wire.write_result(room, result)
        os.write(_DONE, result[:1])
        signal.pause()  # the zygote asks the kernel for the peak memory, and kills
    except BaseException:  # whatever it is, this process must not go on as a second zygote
        traceback.print_exc()
    finally:
        os._exit(EXIT_INTERNAL)


def run(text: str, entry_point: str, cases: Sequence[Case]) -> bytes:
    """Return the tagged result of calling ``entry_point`` of the program for all ``cases``."""
    try:
        function = _load(text, entry_point)
        packed = [pack(function(*case.args, **case.kwargs), case) for case in cases]
        return RETURNED + b"".join(packed)
    except BaseException as error:  # a program may raise anything, SystemExit included
        return _describe(error)


def _load(text: str, entry_point: str) -> Callable[..., Any]:
    """Return the function; a bundle's is named with its module, such as ``search.moves.best``."""
    name, _, function_name = entry_point.rpartition(".")
    if name:
        load_files(files_of(text))
        module: ModuleType = importlib.import_module(name)
    else:
        module = ModuleType("candidate")
        sys.modules[module.__name__] = module  # dataclasses look their own module up
        run_source(text, FILENAME, module)
    function = getattr(module, function_name, None)
    if not callable(function):
        raise _NoEntryPoint(f"the program defines no function {entry_point!r}")
    return function  # type: ignore[no-any-return]


def _describe(error: BaseException) -> bytes:
    if isinstance(error, MemoryError):
        failure = Failure.MEMORY
    else:
        failure = Failure.OUTPUT if isinstance(error, ContractError) else Failure.ERROR
    try:
        if isinstance(error, ContractError | _NoEntryPoint):
            return _raised(failure, str(error)[:_TEXT_CHARACTERS], "")
        return _raised(failure, _message(error), _traceback(error))
    except BaseException:  # an exception's own methods may raise, or memory may still be short
        return _raised(failure, type(error).__name__, "")


def _raised(failure: Failure, *texts: str) -> bytes:
    parts = [text[-_TEXT_CHARACTERS:].replace("\0", "?") for text in (str(failure), *texts)]
    return RAISED + "\0".join(parts).encode(errors="replace")[: RAISED_BYTES - len(RAISED)]


def _message(error: BaseException) -> str:
    place = _place(error)
    text = str(error.msg if isinstance(error, SyntaxError) else error)[:_TEXT_CHARACTERS]
    kind = type(error).__name__
    described = f"{kind}: {text}" if text else kind
    return (f"{place}: {described}" if place else described)[:_TEXT_CHARACTERS]


def _place(error: BaseException) -> str:
    """Return the program's line where ``error`` came from: the innermost one on the way."""
    steps = traceback.walk_tb(error.__traceback__)
    places = [(frame.f_code.co_filename, line) for frame, line in steps]
    if isinstance(error, SyntaxError):
        places.append((error.filename or "", error.lineno or 0))
    for filename, line in reversed(places):
        if filename == FILENAME:
            return f"line {line}"
        if is_source(filename):
            return f"{name_of(filename)} line {line}"
    return ""


def _traceback(error: BaseException) -> str:
    step: TracebackType | None = error.__traceback__
    while step is not None and not is_source(step.tb_frame.f_code.co_filename):
        step = step.tb_next  # leave out the frames of this file
    lines = traceback.format_exception(
        type(error), error, step, limit=-_TRACEBACK_FRAMES, chain=False
    )
    return "".join(lines)
